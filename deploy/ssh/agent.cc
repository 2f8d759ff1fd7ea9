#include "deploy/ssh/agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "common/base/controls.h"
#include "deploy/ssh/host_key.h"

namespace muster::ssh {
namespace {

constexpr char kRequestIdentities = 11, kIdentitiesAnswer = 12;
constexpr char kSignRequest = 13, kSignResponse = 14;
constexpr Duration kListTime = std::chrono::seconds(5), kSignTime = std::chrono::seconds(60);

// Reads or writes all of `size` bytes. False: the agent closed its end, or the deadline passed.
template <class Transfer>
bool transfer_all(int fd, short events, std::size_t size, Deadline deadline, Transfer transfer) {
  for (std::size_t done = 0; done < size;) {
    pollfd ready{.fd = fd, .events = events, .revents = 0};
    if (::poll(&ready, 1, milliseconds_until(deadline)) <= 0) {
      if (passed(deadline)) return false;
      continue;
    }
    const ssize_t count = transfer(done);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

bool send_all(int fd, std::string_view bytes, Deadline deadline) {
  return transfer_all(fd, POLLOUT, bytes.size(), deadline, [&](std::size_t done) {
    return ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}
bool receive_all(int fd, std::string& bytes, Deadline deadline) {
  return transfer_all(fd, POLLIN, bytes.size(), deadline, [&](std::size_t done) {
    return ::recv(fd, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
  });
}

}  // namespace

Result<Agent> Agent::open(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path)
    return fail(ErrorCode::InvalidArgument, "the path of the agent's socket is too long");
  socket.copy(address.sun_path, socket.size());
  io::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail_errno("connecting to ssh-agent at '" + socket + "'", errno);
  return Agent(std::move(fd));
}

Result<std::vector<AgentKey>> Agent::keys() {
  auto body = ask({kRequestIdentities}, kIdentitiesAnswer, kListTime);
  if (!body) return fail(std::move(body).error());
  return parse_agent_keys(*body);
}

Result<std::string> Agent::sign(std::string_view blob, std::string_view data) {
  const std::string flags(4, '\0');
  auto body =
      ask(kSignRequest + string_bytes(blob) + string_bytes(data) + flags, kSignResponse, kSignTime);
  if (!body) return fail(std::move(body).error());
  std::string_view rest = *body;
  auto signature = take_string(rest);
  if (signature && take_string(*signature)) {
    if (const auto bytes = take_string(*signature)) return std::string(*bytes);
  }
  return fail(ErrorCode::Io, "ssh-agent's signature cannot be read");
}

Result<std::string> Agent::ask(const std::string& body, char expected, Duration most) {
  const Deadline deadline = deadline_after(most);
  std::string length(4, '\0');
  if (!send_all(fd_.get(), string_bytes(body), deadline) ||
      !receive_all(fd_.get(), length, deadline))
    return fail(ErrorCode::Unreachable, "ssh-agent does not answer");
  std::size_t size = 0;
  for (const char c : length) size = size << 8U | static_cast<unsigned char>(c);
  if (size == 0 || size > kAgentBytesMost)
    return fail(ErrorCode::Io, "ssh-agent's answer cannot be read");
  std::string answer(size, '\0');
  if (!receive_all(fd_.get(), answer, deadline))
    return fail(ErrorCode::Unreachable, "ssh-agent does not answer");
  if (answer[0] != expected) return fail(ErrorCode::NotAllowed, "ssh-agent refused");
  return answer.substr(1);
}

std::vector<AgentKey> parse_agent_keys(std::string_view body) {
  std::vector<AgentKey> keys;
  if (body.size() < 4) return keys;
  body.remove_prefix(4);  // their number
  while (keys.size() < kAgentKeysMost) {
    const auto blob = take_string(body);
    const auto comment = blob ? take_string(body) : std::nullopt;
    if (!comment) break;
    if (!key_type(*blob).empty())
      keys.push_back({.blob = std::string(*blob), .comment = without_controls(*comment)});
  }
  return keys;
}

}  // namespace muster::ssh
