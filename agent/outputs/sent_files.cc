#include "agent/outputs/sent_files.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <iterator>
#include <optional>
#include <system_error>

#include "common/digest/hex.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kBytesMost = std::size_t{512} << 20;
constexpr std::string_view kUnknown = "-";

std::int64_t ns_of(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The number before the next space, which goes too.
template <class Number>
bool take(std::string_view& line, Number& number) {
  const auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (wrong != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '\n' || c == '\\') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    if (is_escape) ++i;
    name += is_escape && text[i] == 'n' ? '\n' : text[i];
  }
  return name;
}

}  // namespace

FileState state_of(const struct stat& status) {
  return {.bytes = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = ns_of(status.st_mtim),
          .changed_ns = ns_of(status.st_ctim),
          .inode = status.st_ino,
          .links = status.st_nlink,
          .sha256 = {}};
}

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool are_same(const FileState& one, const FileState& other) {
  return one.bytes == other.bytes && one.modified_ns == other.modified_ns &&
         one.inode == other.inode &&
         (one.changed_ns == other.changed_ns || one.links != other.links);
}

SentFiles read_sent(const std::filesystem::path& file, std::string_view url) {
  const auto text = io::read_regular_file(file, kBytesMost, io::Links::Own);
  if (!text) return {};
  SentFiles sent;
  std::string_view rest = *text;
  bool is_first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (is_first) {
      if (line != url) return {};
      is_first = false;
      continue;
    }
    FileState state;
    if (!take(line, state.bytes) || !take(line, state.modified_ns) ||
        !take(line, state.changed_ns) || !take(line, state.inode) || !take(line, state.links))
      return {};
    const std::string_view digits = line.substr(0, line.find(' '));
    if (line.size() < digits.size() + 2) return {};
    line.remove_prefix(digits.size() + 1);
    if (is_sha256_hex(digits)) state.sha256 = digits;
    if (state.sha256.empty() && digits != kUnknown) return {};
    sent.emplace(unescaped(line), state);
  }
  return sent;
}

Result<void> write_sent(const std::filesystem::path& file, std::string_view url,
                        const SentFiles& sent) {
  std::string text = fmt::format("{}\n", url);
  for (const auto& [name, state] : sent)
    fmt::format_to(std::back_inserter(text), "{} {} {} {} {} {} {}\n", state.bytes,
                   state.modified_ns, state.changed_ns, state.inode, state.links,
                   state.sha256.empty() ? kUnknown : state.sha256, escaped(name));
  if (auto made = io::make_dirs(file.parent_path(), 0700); !made) return made;
  return io::replace_file(file, text, io::Durable::No);
}

}  // namespace muster::agent
