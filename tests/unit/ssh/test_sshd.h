// A real sshd for tests: this process listens on a free port of the loopback, and starts `sshd -i`
// for each connection. The keys and files are in a temporary directory. One test owns it; its own
// thread accepts. At the end every process that it started is killed.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/process/spawn.h"
#include "common/process/tool.h"
#include "deploy/ssh/child.h"

namespace muster::ssh {

// Why tests with a real sshd cannot run here; empty: they can.
inline std::string no_sshd() {
  for (const char* program : {"sshd", "ssh", "ssh-keygen"})
    if (!process::find_program(program, "/usr/sbin:/usr/bin:/bin"))
      return "there is no program '" + std::string(program) + "'; install openssh-server";
  // sshd's own directory, which its service makes at the start of the host.
  if (::getuid() == 0) ::mkdir("/run/sshd", 0755);
  return "";
}

class TestFolder {
 public:
  TestFolder() {
    std::string path = std::filesystem::temp_directory_path() / "test-ssh.XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    (void)io::replace_file(at(name), text, io::Durable::No);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return io::read_file(at(name), std::size_t{1} << 20U).value_or("");
  }

 private:
  std::string path_;
};

inline Output run_program(const std::string& program, std::vector<std::string> args) {
  const auto end = run_child({.program = program,
                              .args = std::move(args),
                              .deadline = deadline_after(std::chrono::seconds(60))},
                             Source::none());
  return end ? end->output : Output{.out = "", .err = end.error().message, .status = -1};
}

// Makes NAME and NAME.pub in the folder.
inline void make_key(const TestFolder& folder, const std::string& name, const std::string& type,
                     const std::string& passphrase = "") {
  std::vector<std::string> args{"-q", "-t", type, "-N",           passphrase,
                                "-C", name, "-f", folder.at(name)};
  if (type == "rsa") args.insert(args.end(), {"-b", "2048"});
  run_program("ssh-keygen", args);
}

class TestSshd {
 public:
  // `config` is added to a config that accepts only the keys in FOLDER/authorized.
  TestSshd(const TestFolder& folder, const std::string& name, const std::string& config)
      : file_(folder.at(name)) {
    folder.write(name, "AuthorizedKeysFile " + folder.at("authorized") +
                           "\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
                           "LogLevel ERROR\nMaxAuthTries 20\nUseDNS no\n" +
                           (config.find("PasswordAuthentication") == std::string::npos
                                ? "PasswordAuthentication no\n"
                                : "") +
                           "KbdInteractiveAuthentication no\n" + config);
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size);
    ::listen(listener_.get(), 64);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~TestSshd() {
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
    signal_all(SIGCONT);
    signal_all(SIGKILL);
    const MutexLock lock(mutex_);
    for (const pid_t pid : started_) ::waitpid(pid, nullptr, 0);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string port_text() const { return std::to_string(port_); }
  [[nodiscard]] std::size_t connections() {
    const MutexLock lock(mutex_);
    return started_.size();
  }
  // To every sshd with all its children but the commands that it runs.
  void signal_all(int number) {
    const MutexLock lock(mutex_);
    for (const pid_t pid : started_) ::kill(-pid, number);
  }

 private:
  void accept_all() {
    for (;;) {
      pollfd ready[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      ::poll(ready, 2, -1);
      if (ready[1].revents != 0) return;
      const io::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) continue;
      process::SpawnRequest request{.path = "/usr/sbin/sshd",
                                    .argv = {"/usr/sbin/sshd", "-i", "-f", file_}};
      request.env = process::own_environment();
      request.standard_err = process::OpenFile{.path = "/dev/null", .flags = 1};
      request.in_fd = client.get();
      request.out_fd = client.get();
      request.new_session = true;
      const auto pid = process::spawn(request);
      const MutexLock lock(mutex_);
      if (pid) started_.push_back(*pid);
    }
  }

  std::string file_;
  io::UniqueFd listener_, stop_{::eventfd(0, EFD_CLOEXEC)};
  std::uint16_t port_ = 0;
  Mutex mutex_;
  std::vector<pid_t> started_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::ssh
