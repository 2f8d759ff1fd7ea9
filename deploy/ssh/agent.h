// A client of ssh-agent: lists its keys and lets it sign. One thread at a time; blocking, with a
// deadline for each question. libssh2's own client waits for an agent without end.
//
// Source of the format: draft-miller-ssh-agent, sections 3.5 and 3.6 (SSH_AGENTC_REQUEST_IDENTITIES
// and SSH_AGENTC_SIGN_REQUEST). Errors are reasons without a context.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "deploy/ssh/deadline.h"

namespace muster::ssh {

inline constexpr std::size_t kAgentBytesMost = std::size_t{256} << 10U;
inline constexpr std::size_t kAgentKeysMost = 64;

struct AgentKey {
  std::string blob;
  std::string comment;  // without control characters
};

class Agent {
 public:
  // `socket` is the path in SSH_AUTH_SOCK.
  static Result<Agent> open(const std::string& socket);

  Result<std::vector<AgentKey>> keys();
  // Returns the signature without its name. A person may have to confirm it, so it has a minute.
  Result<std::string> sign(std::string_view blob, std::string_view data);

 private:
  explicit Agent(io::UniqueFd fd) : fd_(std::move(fd)) {}
  // Returns the answer's body behind its type, which must be `expected`.
  Result<std::string> ask(const std::string& body, char expected, Duration most);
  io::UniqueFd fd_;
};

// The body of an answer of the agent; pure. Empty where it cannot be read.
std::vector<AgentKey> parse_agent_keys(std::string_view body);

}  // namespace muster::ssh
