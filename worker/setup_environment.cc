#include "worker/setup_environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"
#include "common/rundir/run_file.h"
#include "common/rundir/setup_prefix.h"

namespace muster::worker {
namespace {

constexpr std::size_t kLineMost = 400;
constexpr std::size_t kTailBytes = 4096;

bool is_kept(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNot = {"PWD",
                                                    "OLDPWD",
                                                    "SHLVL",
                                                    "_",
                                                    rundir::kProcessTagVariable,
                                                    rundir::kSetupEnvironmentVariable};
  return !name.empty() && std::ranges::find(kNot, name) == kNot.end();
}

std::unexpected<Error> too_much(const std::string& what) {
  return fail(ErrorCode::InvalidArgument,
              "its environment at the end has " + what + "; unset what the ranks do not need");
}

// Opens only a regular file, which a reader never waits for: the file's writer may have replaced it
// by a pipe.
io::UniqueFd open_file(const std::filesystem::path& path, struct stat& info) {
  io::UniqueFd fd = rundir::open_file(path, O_RDONLY);
  if (fd && ::fstat(fd.get(), &info) != 0) fd.reset();
  return fd;
}

std::string read_at(const io::UniqueFd& fd, off_t from, std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t used = 0;
  while (used < most) {
    const ssize_t count =
        ::pread(fd.get(), bytes.data() + used, most - used, from + static_cast<off_t>(used));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    used += static_cast<std::size_t>(count);
  }
  bytes.resize(used);
  return bytes;
}

// bash puts the name of its script before its messages: here that is the number of a descriptor,
// which helps no reader.
std::string_view without_script(std::string_view line) {
  if (!line.starts_with("/proc/self/fd/")) return line;
  const auto end = line.find(": ");
  return end == std::string_view::npos ? line : line.substr(end + 2);
}

}  // namespace

Result<std::vector<std::string>> parse_setup_environment(std::string_view bytes) {
  if (bytes.empty())
    return fail(ErrorCode::InvalidArgument,
                "it left before its last line, and its environment with it; 'exit' and 'exec' end "
                "the shell");
  if (bytes.back() != '\0')
    return fail(ErrorCode::InvalidArgument,
                "its environment was written in part; is the disk full?");
  std::vector<std::string> variables;
  while (!bytes.empty()) {
    const std::string_view variable = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(variable.size() + 1);
    const auto equals = variable.find('=');
    if (equals == std::string_view::npos || !is_kept(variable.substr(0, equals))) continue;
    if (variable.size() > kSetupStringMost)
      return too_much("a variable '" +
                      std::string(variable.substr(0, std::min<std::size_t>(equals, 64))) +
                      "' of more than 128 KiB");
    if (variables.size() == kSetupVariablesMost)
      return too_much("more than " + std::to_string(kSetupVariablesMost) + " variables");
    variables.emplace_back(variable);
  }
  return variables;
}

Result<std::vector<std::string>> read_setup_environment(const std::filesystem::path& path) {
  struct stat info{};
  const io::UniqueFd fd = open_file(path, info);
  if (!fd)
    return fail(ErrorCode::Io,
                "the file of its environment, '" + path.string() + "', cannot be read");
  if (info.st_size > static_cast<off_t>(kSetupBytesMost))
    return too_much("more than " + std::to_string(kSetupBytesMost) + " bytes");
  return parse_setup_environment(read_at(fd, 0, static_cast<std::size_t>(info.st_size)));
}

std::string failed_command(const std::filesystem::path& environment,
                           const std::filesystem::path& script) {
  constexpr std::size_t kMost = 120;
  struct stat info{};
  const io::UniqueFd left = open_file(environment, info);
  if (!left) return {};
  std::string command = read_at(left, 0, kTailBytes);
  // a part of an environment
  if (command.empty() || command.find('\0') != std::string::npos) return {};
  std::size_t number = 0;
  const auto read = std::from_chars(command.data(), command.data() + command.size(), number);
  if (read.ptr == command.data() + command.size()) {
    const io::UniqueFd fd = open_file(script, info);
    if (!fd || info.st_size > static_cast<off_t>(kSetupBytesMost)) return {};
    const std::string text = read_at(fd, 0, static_cast<std::size_t>(info.st_size));
    std::string_view rest(text);
    if (rest.starts_with(rundir::kSetupPrefix)) rest.remove_prefix(rundir::kSetupPrefix.size());
    for (; number > 1 && !rest.empty(); --number)
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    command = rest.substr(0, rest.find('\n'));
  }
  std::erase_if(command, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  command.erase(0, std::min(command.find_first_not_of(' '), command.size()));
  if (command.size() > kMost) command = command.substr(0, kMost) + "...";
  return command;
}

std::string last_line(const std::filesystem::path& log) {
  struct stat info{};
  const io::UniqueFd fd = open_file(log, info);
  if (!fd) return {};
  const std::string tail =
      read_at(fd, std::max<off_t>(0, info.st_size - static_cast<off_t>(kTailBytes)), kTailBytes);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const auto end = tail.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const auto before = tail.find_last_of("\r\n", end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  std::string line(without_script(std::string_view(tail).substr(begin, end + 1 - begin)));
  std::erase_if(line, is_control);
  if (line.size() > kLineMost) line.resize(kLineMost);
  return line;
}

}  // namespace muster::worker
