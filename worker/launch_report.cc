#include "worker/launch_report.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "common/rundir/run_file.h"

namespace muster::worker {
namespace {

constexpr std::size_t kReportMost = 1U << 20U;
constexpr std::size_t kNameMost = 64, kPathMost = 4095;

std::optional<int> take_number(std::string_view& line) {
  int number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || (end != line.data() + line.size() && *end != ' '))
    return std::nullopt;
  line.remove_prefix(std::min(static_cast<std::size_t>(end - line.data()) + 1, line.size()));
  return number;
}

bool take_word(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  return true;
}

bool is_path(std::string_view text) { return text.starts_with('/') && text.size() <= kPathMost; }

std::string printable(std::string_view name) {
  std::string text(name.substr(0, kNameMost));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

LaunchEnd parse_launch_report(std::string_view text) {
  LaunchEnd bad;
  bool launched = false;
  std::set<int> open;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (take_word(line, "begin ")) {
      if (const auto pid = take_number(line)) open.insert(*pid);
      bad = {};
      launched = true;
    } else if (take_word(line, "gone ")) {
      if (const auto pid = take_number(line)) open.erase(*pid);
    } else if (take_word(line, "end ")) {
      const auto pid = take_number(line), code = take_number(line), signal = take_number(line);
      if (!pid || !code || !signal) continue;
      open.erase(*pid);
      const bool sound =
          *signal >= 0 && *signal < NSIG && (*signal > 0 || (*code >= 0 && *code < 256));
      if (sound && !bad.bad())
        bad = {.code = *signal > 0 ? -1 : *code, .signal = *signal, .name = printable(line)};
    }
  }
  if (!bad.bad() && !open.empty()) bad = {.code = -1, .signal = SIGKILL};
  bad.launched = launched;
  return bad;
}

Launches parse_launches(std::string_view text) {
  Launches launches;
  // A last line without a line feed is still being written.
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (take_word(line, "begin ")) {
      launches.any = true;
    } else if (take_word(line, "log ")) {
      const auto rank = take_number(line);
      if (rank && *rank >= 0 && is_path(line))
        launches.logs.push_back(
            {.rank = static_cast<std::uint32_t>(*rank), .path = std::string(line)});
    } else if (take_word(line, "saves ") && !launches.saves) {
      const auto first = take_number(line), ranks = take_number(line);
      const bool alone = take_word(line, "alone ");
      if (!first || !ranks || *first < 0 || *ranks < 0 || (!alone && !take_word(line, "whole ")) ||
          !is_path(line))
        continue;
      launches.saves = {.first_rank = static_cast<std::uint32_t>(*first),
                        .ranks = static_cast<std::uint32_t>(*ranks),
                        .weights_alone = alone,
                        .dir = std::string(line)};
    }
  }
  return launches;
}

std::string read_launches(const std::filesystem::path& path) {
  return rundir::read_file(path, kReportMost).value_or(std::string());
}

LaunchEnd read_launch_report(const std::filesystem::path& path) {
  return parse_launch_report(read_launches(path));
}

}  // namespace muster::worker
