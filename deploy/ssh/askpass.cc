#include "deploy/ssh/askpass.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "common/io/unique_fd.h"

namespace muster::ssh {
namespace {

constexpr const char* kVariable = "MUSTER_SSH_ASKPASS";
constexpr std::size_t kQuestionMost = std::size_t{4} << 10U;
// `ssh` cuts longer names.
constexpr std::size_t kKeyShown = 100, kUserShown = 30, kHostShown = 128;
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};

// USER@HOST with the bounds of older releases.
std::string account_cut(const std::string& account) {
  const std::size_t at = account.rfind('@');
  if (at == std::string::npos) return account;
  return account.substr(0, std::min(at, kUserShown)) + "@" + account.substr(at + 1, kHostShown);
}

std::string name_lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  path.copy(address.sun_path, path.size());
  return address;
}

void wait_at_most(int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
}

// Until the other end has said everything.
std::string read_all(int fd, std::size_t most) {
  std::string text;
  std::array<char, 512> part{};
  while (text.size() < most) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  ::explicit_bzero(part.data(), part.size());
  return text;
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool is_own_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

const Secret* answer_to(std::string_view question, const AskpassAnswers& answers) {
  for (const auto& one : answers.passphrases)
    if (question.starts_with("Enter passphrase for key '" + one.path.substr(0, kKeyShown) + "'"))
      return &one.secret;
  const std::string shown = name_lowered(question);
  for (const auto& one : answers.passwords) {
    for (const std::string& account : one.accounts) {
      for (const std::string& name : {account, account_cut(account)})
        if (shown.starts_with(name_lowered(name) + "'s password:")) return &one.secret;
    }
  }
  return nullptr;
}

struct AskpassServer::Impl {
  explicit Impl(const AskpassAnswers& known) : answers(known) {}

  void serve() {
    while (true) {
      std::array<pollfd, 2> ready{pollfd{.fd = listening.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = end.get(), .events = POLLIN, .revents = 0}};
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
      if (ready[1].revents != 0) return;
      if (ready[0].revents == 0) continue;
      const io::UniqueFd one(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (one) answer(one.get());
    }
  }

  void answer(int fd) const {
    if (!is_own_user(fd)) return;
    wait_at_most(fd);
    const std::string question = read_all(fd, kQuestionMost);
    if (const Secret* secret = answer_to(question, answers))
      (void)(send_all(fd, {secret->c_str(), secret->size()}) && send_all(fd, "\n"));
  }

  const AskpassAnswers& answers;
  std::string path;
  io::UniqueFd listening, end;
  std::thread thread;
};

AskpassServer::AskpassServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<AskpassServer>> AskpassServer::start(const std::string& socket,
                                                            const AskpassAnswers& answers) {
  const std::string doing = "making a socket for answers at '" + socket + "'";
  const auto address = address_of(socket);
  if (!address) return fail(ErrorCode::InvalidArgument, doing + ": its name is too long");
  auto impl = std::make_unique<Impl>(answers);
  impl->path = socket;
  impl->listening = io::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  impl->end = io::UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!impl->listening || !impl->end ||
      ::bind(impl->listening.get(), reinterpret_cast<const sockaddr*>(&*address),
             sizeof(*address)) != 0 ||
      ::listen(impl->listening.get(), 8) != 0)
    return fail_errno(doing, errno);
  impl->thread = std::thread([served = impl.get()] { served->serve(); });
  return std::unique_ptr<AskpassServer>(new AskpassServer(std::move(impl)));
}

AskpassServer::~AskpassServer() {
  ::eventfd_write(impl_->end.get(), 1);
  impl_->thread.join();
  ::unlink(impl_->path.c_str());
}

std::vector<std::string> askpass_environment(const std::string& program,
                                             const std::string& socket) {
  // DISPLAY: an `ssh` before 8.4 asks SSH_ASKPASS only where there is one. Nothing connects to it.
  return {"SSH_ASKPASS=" + program, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0",
          std::string(kVariable) + "=" + socket};
}

bool is_askpass(int argc) { return argc == 2 && ::getenv(kVariable) != nullptr; }

int run_askpass(const char* question) {
  const char* socket = ::getenv(kVariable);
  const auto address = address_of(socket == nullptr ? "" : socket);
  const io::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!address || !fd ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0)
    return 1;
  wait_at_most(fd.get());
  if (!send_all(fd.get(), question)) return 1;
  ::shutdown(fd.get(), SHUT_WR);
  const Secret secret(read_all(fd.get(), kQuestionMost));
  if (secret.size() == 0) return 1;
  return ::write(STDOUT_FILENO, secret.c_str(), secret.size()) ==
                 static_cast<ssize_t>(secret.size())
             ? 0
             : 1;
}

}  // namespace muster::ssh
