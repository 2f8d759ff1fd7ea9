#include "deploy/ssh/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/io/unique_fd.h"
#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::ssh {
namespace {

constexpr std::size_t kChildPartBytes = std::size_t{64} << 10U;

struct Ends {
  io::UniqueFd ours, childs;
};
// A socket pair, not a pipe: a write to a reader that is gone must not raise SIGPIPE.
Result<Ends> stream() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("making a socket pair", errno);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Ends{io::UniqueFd(ends[0]), io::UniqueFd(ends[1])};
}

// Reads what is there. Closes the descriptor at the end of the stream.
void drain(io::UniqueFd& fd, std::string& output, bool& cut, std::size_t most) {
  std::array<char, kChildPartBytes> part{};
  while (fd) {
    const ssize_t count = ::read(fd.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return fd.reset();
    append_bounded(output, cut, {part.data(), static_cast<std::size_t>(count)}, most);
  }
}

// Sends what the program takes at once. Closes the descriptor after the last byte.
Result<void> feed(io::UniqueFd& fd, Source& input, std::string_view& next) {
  while (fd) {
    if (next.empty()) {
      auto more = input.next(kChildPartBytes);
      if (!more) return fail(std::move(more).error());
      next = *more;
      if (next.empty()) {
        fd.reset();
        break;
      }
    }
    const ssize_t count = ::send(fd.get(), next.data(), next.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      fd.reset();  // the program reads no more
      break;
    }
    next.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

class Child {
 public:
  Child(pid_t pid, process::Pidfd handle) : pid_(pid), handle_(std::move(handle)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!reaped_) kill_and_reap();
  }
  [[nodiscard]] int fd() const { return handle_.fd(); }
  int kill_and_reap() {
    // It is not reaped yet, so the group is its own. `ssh` dies of SIGKILL at once.
    ::kill(-pid_, SIGKILL);
    return reap();
  }
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    return status;
  }

 private:
  pid_t pid_;
  process::Pidfd handle_;
  bool reaped_ = false;
};

std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  std::vector<std::string> env = process::own_environment();
  for (const std::string& setting : settings) {
    const std::string name = setting.substr(0, setting.find('=') + 1);
    std::erase_if(env, [&](const std::string& one) { return one.starts_with(name); });
    env.push_back(setting);
  }
  return env;
}

}  // namespace

Result<ChildEnd> run_child(const ChildRequest& request, Source input) {
  auto in = stream(), out = stream(), err = stream();
  for (auto* one : {&in, &out, &err})
    if (!*one) return fail(std::move(*one).error());
  process::SpawnRequest spawned{.path = request.program,
                                .argv = {request.program},
                                .env = environment_with(request.env),
                                .in_fd = in->childs.get(),
                                .out_fd = out->childs.get(),
                                .err_fd = err->childs.get(),
                                .new_session = true};
  spawned.argv.insert(spawned.argv.end(), request.args.begin(), request.args.end());
  const auto pid = process::spawn(spawned);
  if (!pid) return fail(Error(pid.error()));
  auto handle = process::Pidfd::open_child(*pid);
  if (!handle) {
    ::kill(-*pid, SIGKILL);
    while (::waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return fail(std::move(handle).error());
  }
  Child child(*pid, std::move(*handle));
  for (auto* one : {&in, &out, &err}) (*one)->childs.reset();

  ChildEnd end;
  Output& output = end.output;
  const auto drain_both = [&] {
    drain(out->ours, output.out, output.out_cut, request.output_most);
    drain(err->ours, output.err, output.err_cut, request.output_most);
  };
  std::string_view next;
  bool exited = false;
  while (!exited && !end.late) {
    if (auto fed = feed(in->ours, input, next); !fed) return fail(std::move(fed).error());
    std::array<pollfd, 4> ready{pollfd{.fd = child.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = out->ours.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = err->ours.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = in->ours.get(), .events = POLLOUT, .revents = 0}};
    ::poll(ready.data(), ready.size(), milliseconds_until(request.deadline));
    drain_both();
    exited = ready[0].revents != 0;
    end.late = !exited && passed(request.deadline);
  }
  const int status = end.late ? child.kill_and_reap() : child.reap();
  drain_both();
  if (WIFSIGNALED(status)) {
    output.status = 128 + WTERMSIG(status);
    output.signal = signal_name(WTERMSIG(status));
  } else {
    output.status = WEXITSTATUS(status);
  }
  return end;
}

void append_bounded(std::string& output, bool& cut, std::string_view bytes, std::size_t most) {
  if (cut) return;
  const std::size_t room = most - std::min(most, output.size());
  output.append(bytes.substr(0, room));
  if (bytes.size() <= room) return;
  output.append(kOutputCut);
  cut = true;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "" : name;
}

int signal_number(std::string_view name) {
  for (int number = 1; number < NSIG; ++number)
    if (signal_name(number) == name) return number;
  return 0;
}

}  // namespace muster::ssh
