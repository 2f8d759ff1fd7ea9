#include "common/store/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/controls.h"
#include "common/base/utf8.h"

namespace muster::store {
namespace {

// NAME_MAX; and PATH_MAX (4,096) less what stands above: the place of the tree or of the fetch, and
// the place of the job's inputs in a container.
constexpr std::size_t kPartBytesMost = 255, kNameBytesMost = 3000;
// Each part may be a directory of its own, which is made and removed alone: 3,000 bytes could be
// 1,500 of them.
constexpr std::size_t kPartsMost = 255;
constexpr std::uint64_t kSumMost = std::numeric_limits<std::uint64_t>::max();

std::string shown(std::string_view name) {
  constexpr std::size_t kMost = 200;
  const std::string_view begin = name.substr(0, kMost);  // may end within a character
  return fmt::format("'{}{}'", without_controls(begin.substr(0, utf8_prefix(begin))),
                     begin.size() < name.size() ? "..." : "");
}

// Ends of the code points that stand for control characters: U+2400 + c, and U+2421 for 0x7f.
// Each has three bytes: E2 90 80+c. The quote is U+201B, E2 80 9B.
constexpr std::string_view kQuote = "\xe2\x80\x9b";

// The control character that the three bytes at the begin stand for; -1: none.
int control_at(std::string_view text) {
  if (!text.starts_with("\xe2\x90") || text.size() < 3) return -1;
  const unsigned low = static_cast<unsigned char>(text[2]) - 0x80U;
  if (low >= 1 && low <= 0x1f) return static_cast<int>(low);  // not byte 0, which no file can have
  return low == 0x21 ? 0x7f : -1;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Whether each quote of a part is one that rclone reads as it has written it. It writes a quote of
// the store's own as two, and then asks the store for a name with two (seen with 1.60.1).
bool has_sound_quotes(std::string_view part) {
  constexpr std::string_view kDot = "\xef\xbc\x8e", kSlash = "\xef\xbc\x8f", kZero = "\xe2\x90\x80";
  const std::string dot = fmt::format("{}{}", kQuote, kDot);
  if (part == dot || part == dot + dot) return true;
  for (std::size_t at = 0; (at = part.find(kQuote, at)) != std::string_view::npos;) {
    at += kQuote.size();
    const std::string_view rest = part.substr(at);
    if (control_at(rest) < 0 && !rest.starts_with(kSlash) && !rest.starts_with(kZero)) return false;
    at += kSlash.size();
  }
  return true;
}

// Empty: a node can have such a file or directory, and rclone can fetch it.
std::string name_problem(std::string_view name) {
  // rclone takes the names of a web server as they are, and reads the names to fetch line by line.
  if (std::ranges::any_of(name, is_control)) return "it has a control character";
  if (!is_utf8(name)) return "it is no UTF-8";
  const std::string local = local_name(name);
  if (local.size() > kNameBytesMost)
    return fmt::format("it has {} bytes, at most {}", local.size(), kNameBytesMost);
  const auto parts = static_cast<std::size_t>(std::ranges::count(local, '/')) + 1;
  if (parts > kPartsMost) return fmt::format("it has {} parts, at most {}", parts, kPartsMost);
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return "a part of it is empty, '.' or '..'";
    if (const std::size_t bytes = local_name(part).size(); bytes > kPartBytesMost)
      return fmt::format("a part of it has {} bytes, at most {}", bytes, kPartBytesMost);
    if (!has_sound_quotes(part))
      return "it has the character U+201B, with which rclone marks characters in names";
    at = end + 1;
  }
  return {};
}

bool is_md5(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Removes a number of so many digits from the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int number = 0;
  const std::string_view part = text.substr(0, digits);
  if (part.size() < digits || part.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

// "2026-11-28T03:28:22", with other characters between the numbers for a part of it.
template <std::size_t N>
std::optional<std::array<int, N>> take_numbers(std::string_view& text, std::size_t first_digits,
                                               std::string_view between) {
  std::array<int, N> numbers{};
  for (std::size_t i = 0; i < N; ++i) {
    if (i > 0 && !text.starts_with(between[i - 1])) return std::nullopt;
    if (i > 0) text.remove_prefix(1);
    const auto number = take_number(text, i == 0 ? first_digits : 2);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  return numbers;
}

// A time of the list in UTC: rclone writes some in the zone of its node. Empty: it is none, or one
// of those that rclone gives where the store does not say: 1970 (a web server without
// Last-Modified: seen with 1.60.1), 2000 (`--default-time` of later ones), and Go's zero time, in
// year 1.
std::string modified_of(std::string_view text) {
  using namespace std::chrono;
  const auto at = take_numbers<6>(text, 4, "--T::");
  if (!at) return {};
  const year_month_day date{year{(*at)[0]}, month{static_cast<unsigned>((*at)[1])},
                            day{static_cast<unsigned>((*at)[2])}};
  if (!date.ok() || (*at)[3] > 23 || (*at)[4] > 59 || (*at)[5] > 60) return {};
  sys_seconds time = sys_days(date) + hours((*at)[3]) + minutes((*at)[4]) + seconds((*at)[5]);
  std::string_view fraction;
  if (text.starts_with('.')) {
    fraction = text.substr(0, std::min(text.find_first_not_of("0123456789", 1), text.size()));
    text.remove_prefix(fraction.size());
  }
  if (text != "Z") {
    const int sign = text.starts_with('-') ? -1 : 1;
    if (!text.starts_with('-') && !text.starts_with('+')) return {};
    text.remove_prefix(1);
    const auto zone = take_numbers<2>(text, 2, ":");
    if (!zone || !text.empty()) return {};
    time -= sign * (hours((*zone)[0]) + minutes((*zone)[1]));
  }
  const bool is_whole = fraction.find_first_not_of(".0") == std::string_view::npos;
  if (is_whole && (time == sys_days(1970y / 1 / 1) || time == sys_days(2000y / 1 / 1))) return {};
  if (time < sys_days(2y / 1 / 1)) return {};
  const auto days = floor<std::chrono::days>(time);
  const year_month_day utc(days);
  const hh_mm_ss clock(time - days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", static_cast<int>(utc.year()),
                     static_cast<unsigned>(utc.month()), static_cast<unsigned>(utc.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     fraction);
}

std::string text_in(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string no_such_file(std::string_view name, const std::string& why) {
  return fmt::format("a node can have no file {}: {}", shown(name), why);
}

Result<Object> object_of(const nlohmann::json& entry, std::string name) {
  if (const std::string wrong = name_problem(name); !wrong.empty())
    return fail(ErrorCode::InvalidArgument, no_such_file(name, wrong));
  const auto size = entry.find("Size");
  if (size == entry.end() || !size->is_number_unsigned())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the store does not say how long {} is, so nobody can check that it "
                            "has come whole",
                            shown(name)));
  Object object{.name = std::move(name),
                .size = size->get<std::uint64_t>(),
                .modified = modified_of(text_in(entry, "ModTime"))};
  if (const auto hashes = entry.find("Hashes"); hashes != entry.end() && hashes->is_object())
    if (std::string md5 = text_in(*hashes, "md5"); is_md5(md5)) object.md5 = std::move(md5);
  return object;
}

// Whether one of the names, which are sorted, is below the directory. Names that begin with the
// directory's own stand between it and those below: "p", "p-x", "p.x", "p/q".
template <class Names, class NameOf = std::identity>
bool has_below(const Names& names, const std::string& dir, NameOf name_of = {}) {
  const std::string prefix = dir + "/";
  const auto first = std::ranges::lower_bound(names, prefix, {}, name_of);
  return first != names.end() && std::invoke(name_of, *first).starts_with(prefix);
}

// `dirs`: the listed directories, sorted.
Result<void> check(const std::vector<Object>& objects, const std::vector<std::string>& dirs) {
  for (std::size_t at = 0; at < objects.size(); ++at) {
    const std::string& name = objects[at].name;
    if (at > 0 && objects[at - 1].name == name)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{} is there twice, and a file's name once", shown(name)));
    if (has_below(objects, name, &Object::name))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{} is an object, and {} has objects below it, too; a node can have "
                              "only one of both",
                              shown(name), shown(name + "/")));
    if (std::ranges::binary_search(dirs, name) || has_below(dirs, name))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{} is an object, and a directory, too; a node can have only one of "
                              "both",
                              shown(name)));
  }
  return {};
}

// The lines of a list and of the log come through one pipe, and rclone ends the line of an entry
// only when it has the next: an entry may have a line of the log behind it. In a string of JSON, a
// quote has a backslash before it or ends the string.
std::string_view without_log(std::string_view line) {
  if (const std::size_t log = line.find("}{\"level\":"); log != std::string_view::npos)
    return line.substr(0, log + 1);
  if (line.ends_with(',')) line.remove_suffix(1);
  return line;
}

// A time for a sentence.
std::string_view time_text(const std::string& modified) {
  return modified.empty() ? "no time" : std::string_view(modified);
}

}  // namespace

std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) {
  return a > kSumMost - b ? kSumMost : a + b;
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const Object& one : objects) sum = sum_of(sum, one.size);
  return sum;
}

Result<void> check_names(const Manifest& manifest) {
  if (!std::ranges::is_sorted(manifest.objects, {}, &Object::name) ||
      !std::ranges::is_sorted(manifest.empty))
    return fail(ErrorCode::InvalidArgument, "the names are in no order");
  for (const Object& one : manifest.objects)
    if (const std::string wrong = name_problem(one.name); !wrong.empty())
      return fail(ErrorCode::InvalidArgument, no_such_file(one.name, wrong));
  for (const std::string& dir : manifest.empty)
    if (const std::string wrong = name_problem(dir); !wrong.empty())
      return fail(ErrorCode::InvalidArgument, no_such_file(dir, wrong));
  return check(manifest.objects, manifest.empty);
}

Result<Manifest> parse_listing(std::string_view output, const Selection* wanted) {
  const bool wants_all = wanted == nullptr || wanted->has_everything();
  Manifest manifest;
  std::vector<std::string> dirs;  // as listed, with or without objects below
  std::size_t count = 0;
  bool begun = false, ended = false;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    std::string_view line = output.substr(at, end - at);
    at = end + 1;
    if (line == "[") begun = true;
    if (line == "]") ended = begun;
    if (!line.starts_with("{\"Path\":")) continue;
    const auto entry = nlohmann::json::parse(without_log(line), nullptr, false);
    if (!entry.is_object() || !entry.at("Path").is_string() || !begun || ended)
      return fail(ErrorCode::DataLoss, "a line of rclone's list is none");
    std::string name = text_in(entry, "Path");
    const auto is_dir = entry.find("IsDir");
    const bool is_directory = is_dir != entry.end() && *is_dir == true;
    if (!wants_all && (is_directory || !wanted->has(name))) continue;
    if (++count > kObjectsMost)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("there are more than {} objects, which is the limit of an input; "
                              "name a part of them, or pack them",
                              kObjectsMost));
    if (is_directory) {
      if (name_problem(name).empty()) dirs.push_back(std::move(name));
      continue;
    }
    auto object = object_of(entry, std::move(name));
    if (!object) return fail(std::move(object.error()));
    manifest.objects.push_back(*std::move(object));
  }
  if (!ended) return fail(ErrorCode::DataLoss, "rclone's list has no end");
  std::ranges::sort(manifest.objects, {}, &Object::name);
  std::ranges::sort(dirs);
  const auto repeated = std::ranges::unique(dirs);
  dirs.erase(repeated.begin(), repeated.end());
  if (auto sound = check(manifest.objects, dirs); !sound) return fail(std::move(sound.error()));
  for (const std::string& dir : dirs)
    if (!has_below(manifest.objects, dir, &Object::name) && !has_below(dirs, dir))
      manifest.empty.push_back(dir);
  return manifest;
}

std::string change_between(const Manifest& before, const Manifest& after) {
  auto old = before.objects.begin();
  auto now = after.objects.begin();
  for (; old != before.objects.end() || now != after.objects.end(); ++old, ++now) {
    if (now == after.objects.end() || (old != before.objects.end() && old->name < now->name))
      return fmt::format("{} is not there any more", shown(old->name));
    if (old == before.objects.end() || now->name < old->name)
      return fmt::format("{} is new", shown(now->name));
    if (old->size != now->size)
      return fmt::format("{} has another size ({}, was {})", shown(now->name), now->size,
                         old->size);
    if (old->md5 != now->md5) return fmt::format("{} has another MD5", shown(now->name));
    if (old->modified != now->modified)
      return fmt::format("{} was written again ({}, was {})", shown(now->name),
                         time_text(now->modified), time_text(old->modified));
  }
  return before.empty == after.empty ? "" : "its empty directories are others";
}

std::vector<std::vector<Object>> batches(std::span<const Object> objects, std::uint64_t bytes_most,
                                         std::size_t count_most) {
  std::vector<std::vector<Object>> made;
  std::uint64_t bytes = 0;
  for (const Object& one : objects) {
    if (made.empty() || made.back().size() >= count_most || sum_of(bytes, one.size) > bytes_most) {
      made.emplace_back();
      bytes = 0;
    }
    bytes = sum_of(bytes, one.size);
    made.back().push_back(one);
  }
  return made;
}

std::string local_name(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    const std::string_view rest = name.substr(at);
    // A quoted character stands for itself.
    if (rest.starts_with(kQuote) && control_at(rest.substr(kQuote.size())) >= 0) {
      text += rest.substr(kQuote.size(), 3);
      at += kQuote.size() + 3;
    } else if (const int control = control_at(rest); control >= 0) {
      text += static_cast<char>(control);
      at += 3;
    } else {
      text += rest.front();
      ++at;
    }
  }
  return text;
}

}  // namespace muster::store
