// LocalSession runs the commands of a session by the sh of this machine, in a temporary directory
// that it owns, for tests of scripts. /etc/systemd/system and /run/systemd/system are directories
// in there. Programs of `bin()` come before those of PATH. One thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "common/process/tool.h"
#include "deploy/rollout/host.h"
#include "deploy/ssh/session.h"

namespace muster::rollout {

class LocalHost {
 public:
  LocalHost() {
    std::string name = (std::filesystem::temp_directory_path() / "rolloutXXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    dir_ = name;
    std::filesystem::create_directories(dir_ / "bin");
    std::filesystem::create_directories(units());
  }
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;
  ~LocalHost() {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  [[nodiscard]] std::filesystem::path dir() const { return dir_; }
  [[nodiscard]] std::filesystem::path units() const { return dir_ / "etc-units"; }
  void write(const std::filesystem::path& file, std::string_view text) const {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  [[nodiscard]] std::string read(const std::filesystem::path& file) const {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A script that stands for a program.
  void program(const std::filesystem::path& file, std::string_view script) const {
    write(file, "#!/bin/sh\n" + std::string(script));
    ::chmod(file.c_str(), 0755);
  }
  [[nodiscard]] std::filesystem::path bin(std::string_view name) const {
    return dir_ / "bin" / name;
  }

  [[nodiscard]] std::string here(std::string text) const {
    for (const std::string_view real : {"/etc/systemd/system", "/run/systemd/system"})
      for (auto at = text.find(real); at != std::string::npos; at = text.find(real, at + 1))
        text.replace(at, real.size(), units().string());
    return text;
  }

  ssh::Output run(const std::string& command, std::string_view input) const {
    write(dir_ / "stdin", here(std::string(input)));
    const auto env = process::tool_environment((dir_ / "bin").string() + ":" + std::getenv("PATH"));
    // exec: the script is the process that the shell was.
    const std::string redirected =
        "exec <'" + (dir_ / "stdin").string() + "' 2>'" + (dir_ / "stderr").string() + "'\n";
    process::ToolRunner tools;
    const auto answers = tools.run({{.program = "sh", .args = {"-c", redirected + here(command)}}},
                                   env, {.bytes = 8 << 20});
    ssh::Output output;
    output.out = answers.front().output;
    output.out_cut = output.out.size() > ssh::kOutputBytesMost;
    if (output.out_cut) output.out.resize(ssh::kOutputBytesMost);
    output.err = read(dir_ / "stderr");
    output.status = answers.front().status.value_or(255);
    return output;
  }

 private:
  std::filesystem::path dir_;
};

class LocalSession final : public ssh::Session {
 public:
  explicit LocalSession(const LocalHost& host) : host_(host) {}
  Result<ssh::Output> run(const ssh::Command& command, ssh::Source input, Duration) override {
    if (command.text.size() > ssh::kCommandBytesMost)
      return fail(ErrorCode::InvalidArgument, "the command is too long");
    std::string bytes;
    for (;;) {
      const auto next = input.next(65536);
      if (!next) return fail(Error(next.error()));
      if (next->empty()) break;
      bytes += *next;
    }
    return host_.run(command.text, bytes);
  }
  [[nodiscard]] const ssh::Transport& transport() const override { return transport_; }

 private:
  const LocalHost& host_;
  ssh::Transport transport_;
};

inline Result<Host> host_over(const LocalHost& local, ssh::Prompts& prompts,
                              const hosts::Login& login = {.host = "h1"}) {
  return Host::over(login, std::make_unique<LocalSession>(local), prompts);
}

}  // namespace muster::rollout
