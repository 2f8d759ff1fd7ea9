#include "common/process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>

namespace muster::process {
namespace {

class Actions {
 public:
  Actions() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const auto& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

int redirect(posix_spawn_file_actions_t* actions, const SpawnRequest& request) {
  const auto open = [actions](int fd, const OpenFile& file) {
    return ::posix_spawn_file_actions_addopen(actions, fd, file.path.c_str(), file.flags,
                                              file.mode);
  };
  int error = request.in_fd ? ::posix_spawn_file_actions_adddup2(actions, *request.in_fd, 0)
                            : open(0, request.standard_in);
  if (error == 0)
    error = request.out_fd ? ::posix_spawn_file_actions_adddup2(actions, *request.out_fd, 1)
                           : open(1, request.standard_out);
  if (error == 0) {
    if (request.err_fd) {
      error = ::posix_spawn_file_actions_adddup2(actions, *request.err_fd, 2);
    } else if (request.standard_err) {
      error = open(2, *request.standard_err);
    } else {
      error = ::posix_spawn_file_actions_adddup2(actions, 1, 2);
    }
  }
  return error;
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
  Actions setup;
  int error = 0;
  if (!request.inherit_standard) error = redirect(setup.actions(), request);
  if (error == 0 && request.cwd)
    error = ::posix_spawn_file_actions_addchdir_np(setup.actions(), request.cwd->c_str());
  if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(setup.actions(), 3);
  if (error != 0) return fail_errno("preparing to execute '" + request.path + "'", error);

  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(setup.attributes(), &none);
  ::posix_spawnattr_setsigdefault(setup.attributes(), &all);
  const int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                    (request.new_session ? POSIX_SPAWN_SETSID : 0);
  ::posix_spawnattr_setflags(setup.attributes(), static_cast<short>(flags));

  const auto argv = pointers(request.argv);
  const auto envp = pointers(request.env);
  pid_t pid = 0;
  error = ::posix_spawnp(&pid, request.path.c_str(), setup.actions(), setup.attributes(),
                         argv.data(), envp.data());
  if (error != 0) {
    auto failure = fail_errno("executing '" + request.path + "'", error);
    if (error == ENOENT) failure.error().code = ErrorCode::NotFound;
    return failure;
  }
  return pid;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    result.emplace_back(*variable);
  return result;
}

}  // namespace muster::process
