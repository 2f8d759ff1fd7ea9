#include "worker/launch_report.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "common/io/file.h"

namespace muster::worker {
namespace {

constexpr std::size_t kReportMost = 1U << 20U;
constexpr std::size_t kNameMost = 64;

std::optional<int> take_number(std::string_view& line) {
  int number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || (end != line.data() + line.size() && *end != ' ')) return std::nullopt;
  line.remove_prefix(std::min(static_cast<std::size_t>(end - line.data()) + 1, line.size()));
  return number;
}

bool take_word(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  return true;
}

std::string printable(std::string_view name) {
  std::string text(name.substr(0, kNameMost));
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
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
      const bool sound = *signal >= 0 && *signal < NSIG && (*signal > 0 || (*code >= 0 && *code < 256));
      if (sound && !bad.bad()) bad = {.code = *signal > 0 ? -1 : *code, .signal = *signal, .name = printable(line)};
    }
  }
  if (!bad.bad() && !open.empty()) bad = {.code = -1, .signal = SIGKILL};
  bad.launched = launched;
  return bad;
}

LaunchEnd read_launch_report(const std::filesystem::path& path) {
  const auto text = io::read_regular_file(path, kReportMost);
  return text ? parse_launch_report(*text) : LaunchEnd();
}

}  // namespace muster::worker
