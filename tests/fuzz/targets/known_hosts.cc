// known_hosts files: the first line is a host's name, the rest is the file. Also what ssh-agent and
// key files have.
#include <algorithm>
#include <string>

#include "common/base/controls.h"
#include "deploy/ssh/agent.h"
#include "deploy/ssh/host_key.h"
#include "deploy/ssh/host_names.h"
#include "deploy/ssh/identity.h"
#include "deploy/ssh/known_hosts.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::ssh;

const std::string kKey = string_bytes("ssh-ed25519") + string_bytes("key");

void check_file(std::string_view name, std::string_view text) {
  KnownHosts hosts;
  hosts.add("known_hosts", text);
  require(hosts.problems().size() <= kProblemsMost + 1, "problems are bounded");
  for (const std::string& problem : hosts.problems())
    require(is_message(problem) && problem.find('\n') == std::string::npos,
            "a problem is a sentence", problem);
  for (const std::uint16_t port : {kSshPort, std::uint16_t{2222}}) {
    for (const std::string& type : hosts.types(name, port))
      require(is_plain(type), "a type can be shown", type);
    const KeyAnswer answer = hosts.check(name, port, kKey);
    require((answer.state == KeyState::Unknown) == (answer.at.line == 0), "an answer has a place");
    require(is_plain(answer.recorded_type), "a recorded type can be shown");
  }
}

// A recorded key is known in every file that does not revoke it, whatever else the file has.
void check_line(std::string_view name, std::string_view text) {
  for (const std::string& salt : {std::string(), std::string(kSaltBytes, 's')}) {
    const auto line = known_hosts_line(name, 2222, kKey, salt);
    if (!line) {
      require(is_message(line.error().message), "an error is a sentence", line.error().message);
      continue;
    }
    KnownHosts hosts;
    hosts.add("one", *line);
    hosts.add("two", text);
    const KeyState state = hosts.check(name, 2222, kKey).state;
    require(state == KeyState::Known || state == KeyState::Revoked, "a recorded key is known");
  }
}

}  // namespace

void known_hosts(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view name = input.substr(0, end);
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  check_file(name, text);
  check_line(name, text);
  for (const AgentKey& key : parse_agent_keys(input))
    require(!key_type(key.blob).empty() && !has_controls(key.comment), "an agent's key is one");
  const Identity identity = parse_identity(input);
  require(identity.blob.empty() || key_type(identity.blob) == identity.type, "a key has its type");
  if (const auto bytes = from_base64(input))
    require(to_base64(*bytes).size() == input.size(), "base64 is as long as it was");
}

}  // namespace muster::fuzz
