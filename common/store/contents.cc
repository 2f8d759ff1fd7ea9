#include "common/store/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/digest/hex.h"
#include "common/digest/sha256.h"

namespace muster::store {
namespace {

constexpr std::string_view kFileHead = "file\n", kDirectoryHead = "directory\n";

// Removes a line from the front.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// "1234 SHA-256"
bool take_size(std::string_view line, Content& content) {
  const char* const last = line.data() + line.size();
  const auto [end, error] = std::from_chars(line.data(), last, content.size);
  if (error != std::errc() || end == last || *end != ' ') return false;
  content.sha256.assign(end + 1, last);
  return is_sha256_hex(content.sha256);
}

}  // namespace

std::uint64_t Contents::bytes() const {
  std::uint64_t sum = 0;
  for (const Content& one : objects) sum = sum_of(sum, one.size);
  return sum;
}

// No name has a line end, and none of an object ends with "/".
std::string Contents::text() const {
  std::string text(is_file ? kFileHead : kDirectoryHead);
  for (const Content& one : objects)
    text += fmt::format("{}\n{} {}\n", one.name, one.size, one.sha256);
  for (const std::string& dir : empty) text += dir + "/\n";
  return text;
}

std::string Contents::sha256() const { return sha256_hex(text()); }

Result<Contents> parse_contents(std::string_view text) {
  const auto damaged = [] {
    return fail(ErrorCode::DataLoss, "these are no contents of an input");
  };
  Contents contents{.is_file = text.starts_with(kFileHead), .objects = {}, .empty = {}};
  Manifest names;  // for the checks of names
  const std::string_view head = contents.is_file ? kFileHead : kDirectoryHead;
  if (!text.starts_with(head) || !text.ends_with('\n')) return damaged();
  text.remove_prefix(head.size());
  while (!text.empty()) {
    std::string name(take_line(text));
    if (name.ends_with('/')) {
      name.pop_back();
      names.empty.push_back(name);
      contents.empty.push_back(std::move(name));
      continue;
    }
    Content content{.name = name, .sha256 = {}};
    if (!contents.empty.empty() || !take_size(take_line(text), content)) return damaged();
    names.objects.push_back({.name = std::move(name), .md5 = {}, .modified = {}});
    contents.objects.push_back(std::move(content));
  }
  if (!check_names(names) || (contents.is_file && contents.objects.size() != 1)) return damaged();
  return contents;
}

}  // namespace muster::store
