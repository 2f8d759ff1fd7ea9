#include "common/process/identity.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "common/io/file.h"

namespace muster::process {

Result<ProcStat> parse_stat(std::string_view text) {
  // "PID (name) S PPID PGRP SESSION ...": the name may contain anything, so count from the last
  // bracket.
  const auto bracket = text.rfind(')');
  if (bracket == std::string_view::npos)
    return fail(ErrorCode::Io, "reading a process's stat: no name in it");
  std::array<std::string_view, 53> fields{};
  std::size_t field = 3;
  std::size_t at = bracket + 1;
  while (field < fields.size()) {
    at = text.find_first_not_of(" \n", at);
    if (at == std::string_view::npos) break;
    auto end = text.find_first_of(" \n", at);
    if (end == std::string_view::npos) end = text.size();
    fields.at(field++) = text.substr(at, end - at);
    at = end;
  }
  if (field <= 24)
    return fail(ErrorCode::Io,
                "reading a process's stat: " + std::to_string(field) + " fields only");
  const auto number = [&fields](std::size_t index) {
    std::uint64_t value = 0;
    const auto word = fields.at(index);
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
  };
  return ProcStat{.state = fields[3].front(),
                  .parent = static_cast<pid_t>(number(4)),
                  .group = static_cast<pid_t>(number(5)),
                  .session = static_cast<pid_t>(number(6)),
                  .flags = number(9),
                  .start_time = number(22),
                  .rss_pages = number(24),
                  .env_start = number(50),
                  .env_end = number(51)};
}

Result<ProcStat> read_stat(pid_t pid) {
  // Of its first thread, which has the same fields. For /proc/PID/stat of the own process, qemu's
  // user emulation makes up others, with a start time that differs from what other processes read.
  const std::string number = std::to_string(pid);
  auto text = io::read_file("/proc/" + number + "/task/" + number + "/stat", 16384);
  // If a process exits while its stat is read, the read fails with ESRCH, not ENOENT.
  if (!text)
    return fail(::kill(pid, 0) != 0 && errno == ESRCH ? ErrorCode::NotFound : text.error().code,
                std::move(text.error().message));
  return parse_stat(*text);
}

Result<ProcessId> identify(pid_t pid) {
  auto stat = read_stat(pid);
  if (!stat) return fail(std::move(stat.error()).in("identifying process " + std::to_string(pid)));
  return ProcessId{.pid = pid, .start_time = stat->start_time};
}

Result<ProcessId> self() { return identify(::getpid()); }

bool alive(const ProcessId& process) {
  const auto stat = read_stat(process.pid);
  return stat && stat->start_time == process.start_time && stat->state != 'Z' && stat->state != 'X';
}

Result<BootId> boot_id() {
  auto text = io::read_file("/proc/sys/kernel/random/boot_id", 128);
  if (!text) return fail(std::move(text.error()).in("reading the boot id"));
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return BootId(std::move(*text));
}

}  // namespace muster::process
