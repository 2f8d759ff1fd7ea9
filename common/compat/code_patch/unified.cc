#include "common/compat/code_patch/unified.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/base/controls.h"
#include "common/base/utf8.h"

namespace muster::code_patch {
namespace {

constexpr std::size_t kNameMax = 4096, kShownMax = 120;
constexpr std::string_view kNull = "/dev/null";

// The beginning of a text for a message. Messages are UTF-8, and a diff may have another encoding.
std::string shown(std::string_view text) {
  std::string out;
  for (text = text.substr(0, kShownMax); !text.empty();) {
    const std::size_t sound = utf8_prefix(text);
    out += without_controls(text.substr(0, sound), "");
    if (sound < text.size()) out += '?';
    text.remove_prefix(std::min(sound + 1, text.size()));
  }
  return out;
}

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  // The next line without its end. Nothing: there are no more lines.
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return line;
  }
  [[nodiscard]] std::string_view peek() const {
    return rest_.substr(0, std::min(rest_.find('\n'), rest_.size()));
  }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

struct Range {
  std::uint64_t start = 0;
  std::uint64_t count = 1;
};

// Parses "12,5" or "12", with the sign in front of it.
std::optional<Range> read_range(std::string_view text, char sign) {
  if (!text.starts_with(sign)) return std::nullopt;
  text.remove_prefix(1);
  const char* const last = text.data() + text.size();
  Range range;
  auto [at, error] = std::from_chars(text.data(), last, range.start);
  if (error != std::errc()) return std::nullopt;
  if (at == last) return range;
  if (*at != ',') return std::nullopt;
  const auto [end, wrong] = std::from_chars(at + 1, last, range.count);
  return wrong == std::errc() && end == last ? std::optional(range) : std::nullopt;
}

// Parses "@@ -12,5 +12,6 @@ def f():".
std::optional<std::pair<Range, Range>> read_head(std::string_view line) {
  constexpr std::string_view kBegin = "@@ ", kEnd = " @@";
  if (!line.starts_with(kBegin)) return std::nullopt;
  line.remove_prefix(kBegin.size());
  const std::size_t end = line.find(kEnd), space = line.find(' ');
  if (end == std::string_view::npos || space >= end) return std::nullopt;
  const auto before = read_range(line.substr(0, space), '-'),
             after = read_range(line.substr(space + 1, end - space - 1), '+');
  if (!before || !after) return std::nullopt;
  return std::pair(*before, *after);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Result<std::vector<DiffFile>> run() {
    while (const auto line = lines_.next()) {
      if (auto good = take(*line); !good) return fail(std::move(good.error()));
    }
    if (auto good = finish(); !good) return fail(std::move(good.error()));
    if (files_.empty())
      return fail(ErrorCode::InvalidArgument,
                  "there is no change to a file in it; a unified diff is wanted, as `git diff` and "
                  "`diff -ru a b` make it");
    return std::move(files_);
  }

 private:
  [[nodiscard]] std::unexpected<Error> wrong(const std::string& what) const {
    return fail(ErrorCode::InvalidArgument, fmt::format("line {}: {}", lines_.number(), what));
  }

  Result<void> take(std::string_view line) {
    if (line.starts_with("diff --git ")) {
      if (auto good = finish(); !good) return good;
      git_ = DiffFile{};
      git_line_ = lines_.number();
      return git_name(line.substr(11));
    }
    if (line == "GIT binary patch" ||
        (line.starts_with("Binary files ") && line.ends_with(" differ")))
      return wrong("it changes a binary file, which is not put on; copy that file separately");
    // git accepts modes and names after "+++", too, up to the first hunk
    if (git_ && git_->hunks.empty()) {
      if (auto good = git_line(line); !good) return good;
    }
    if (line.starts_with("--- ") && lines_.peek().starts_with("+++ ")) return file(line.substr(4));
    if (line.starts_with("@@ ") && read_head(line)) return hunk(line);
    return {};
  }

  // Parses "a/x.py b/x.py". This is the only name of a file that is created or deleted empty, or
  // that changes only its mode. A name with a space is recognized because both halves are equal.
  Result<void> git_name(std::string_view names) {
    if (names.starts_with('"')) return quoted(names);
    const std::size_t half = names.size() / 2;
    if (names.size() < 5 || names[half] != ' ' || !names.starts_with("a/") ||
        names.substr(half + 1, 2) != "b/" || names.substr(2, half - 2) != names.substr(half + 3))
      return {};  // renamed, or without a/ and b/: the lines below have the names
    return name_into(names.substr(2, half - 2), git_->name);
  }

  Result<void> mode(std::string_view text) {
    if (text == "100644" || text == "100755") return {};
    if (text == "120000")
      return wrong(
          "it makes or changes a symbolic link, which is not put on; have runtime.setup make it");
    if (text == "160000") return wrong("it changes a submodule: make the diff inside of that");
    return wrong(fmt::format("mode '{}' is not that of a file (100644, 100755)", shown(text)));
  }

  Result<void> git_line(std::string_view line) {
    const auto behind = [&](std::string_view word) {
      return line.starts_with(word) ? std::optional(line.substr(word.size())) : std::nullopt;
    };
    if (const auto value = behind("new file mode ")) {
      git_->created = true;
      return mode(*value);
    }
    if (const auto value = behind("deleted file mode ")) {
      git_->deleted = true;
      return mode(*value);
    }
    for (const std::string_view word : {"old mode ", "new mode "})
      if (const auto value = behind(word)) return mode(*value);
    if (const auto value = behind("index ")) {
      const std::size_t space = value->find(' ');
      return space == std::string_view::npos ? Result<void>() : mode(value->substr(space + 1));
    }
    for (const std::string_view word : {"rename from ", "rename old "})
      if (const auto value = behind(word)) return name_into(*value, git_->old_name);
    for (const std::string_view word : {"rename to ", "rename new "})
      if (const auto value = behind(word)) return name_into(*value, git_->name);
    if (behind("copy from "))
      return wrong("it copies a file, which is not put on; make the diff without --find-copies");
    return {};
  }

  [[nodiscard]] Result<void> quoted(std::string_view name) const {
    return wrong(
        fmt::format("the name {} is quoted for its special characters, which is not read; git -c "
                    "core.quotePath=false diff writes letters as they are",
                    shown(name)));
  }

  Result<void> name_into(std::string_view name, std::string& into) {
    if (name.starts_with('"')) return quoted(name);
    if (const std::string why = wrong_name(name); !why.empty())
      return wrong(fmt::format("'{}' {}", shown(name), why));
    into = name;
    return {};
  }

  // Removes the time after the name and the first part of the name.
  Result<std::string> plain(std::string_view name) {
    if (name.ends_with('\r'))
      return wrong(
          "its lines end in CR and LF, as an editor on Windows leaves them; save it with LF alone "
          "(dos2unix)");
    if (name.starts_with('"')) return fail(quoted(name).error());
    name = name.substr(0, name.find('\t'));
    if (name == kNull) return std::string();
    if (name.starts_with('/'))
      return wrong(fmt::format(
          "'{}' is absolute: names in a patch are below the code, behind a first part (a/, b/)",
          shown(name)));
    const std::size_t slash = name.find('/');
    if (slash == std::string_view::npos)
      return wrong(
          fmt::format("'{}' has no first part, which is taken off (a/{}); make the diff with git, "
                      "or with diff -u of two directories",
                      shown(name), shown(name)));
    std::string result;
    if (auto good = name_into(name.substr(slash + 1), result); !good)
      return fail(std::move(good.error()));
    return result;
  }

  // Reads "--- a/x.py" and the next line.
  Result<void> file(std::string_view before) {
    auto old_name = plain(before);
    if (!old_name) return fail(std::move(old_name.error()));
    const std::string_view after = lines_.next()->substr(4);
    auto new_name = plain(after);
    if (!new_name) return fail(std::move(new_name.error()));
    if (old_name->empty() && new_name->empty()) return wrong("both names are /dev/null");
    if (!git_ || body_) {
      if (auto good = finish(); !good) return good;
      git_ = DiffFile{};
    }
    if (old_name->empty()) git_->created = true;
    if (new_name->empty()) git_->deleted = true;
    // "x.py.orig" next to "x.py": git also takes the shorter name.
    if (git_->name.empty())
      git_->name = new_name->empty()                                        ? *old_name
                   : !old_name->empty() && new_name->starts_with(*old_name) ? *old_name
                                                                            : *new_name;
    body_ = true;
    return {};
  }

  Result<void> hunk(std::string_view head) {
    if (!body_) return wrong("a hunk without the names of its file (--- and +++) before it");
    const auto [before, after] = *read_head(head);
    const std::size_t number = git_->hunks.size() + 1, begin = lines_.number();
    git_->hunks.push_back(before.start);
    for (std::uint64_t left = before.count, right = after.count; left > 0 || right > 0;) {
      const auto line = lines_.next();
      if (!line)
        return wrong(
            fmt::format("hunk {} of '{}' (line {}) is cut off: {} old and {} new lines are missing",
                        number, shown(git_->name), begin, left, right));
      const char kind = line->empty() ? ' ' : line->front();
      const bool both = kind == ' ', old_one = both || kind == '-', new_one = both || kind == '+';
      if (kind == '\\') continue;
      if ((!old_one && !new_one) || (old_one && left == 0) || (new_one && right == 0))
        return wrong(fmt::format(
            "'{}' does not belong into hunk {} of '{}' (line {}), whose head counts other lines",
            shown(*line), number, shown(git_->name), begin));
      if (old_one) --left;
      if (new_one) --right;
      if (kind == '-') ++git_->removed;
      if (kind == '+') ++git_->added;
    }
    return {};
  }

  Result<void> finish() {
    if (!git_) return {};
    if (body_ && git_->hunks.empty())
      return wrong(fmt::format("'{}' has no hunk", shown(git_->name)));
    if (git_->name.empty())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("line {}: which file it changes cannot be determined; make the diff "
                              "without --no-prefix",
                              git_line_));
    if (files_.size() == kFilesMax)
      return wrong(fmt::format("it changes more than {} files", kFilesMax));
    files_.push_back(std::move(*git_));
    git_.reset();
    body_ = false;
    return {};
  }

  Lines lines_;
  std::vector<DiffFile> files_;
  std::optional<DiffFile> git_;  // the file that the lines describe
  std::size_t git_line_ = 0;
  bool body_ = false;  // its --- and +++ were read
};

}  // namespace

std::string wrong_name(std::string_view name) {
  if (name.empty()) return "is no file's name";
  if (name.size() > kNameMax) return fmt::format("has {} bytes, at most {}", name.size(), kNameMax);
  if (name.starts_with('/')) return "is absolute: names in a patch are below the code";
  if (has_controls(name)) return "has control characters in it";
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    at = end + 1;
    if (part == "..") return "leaves the code by '..'";
    if (part.empty() || part == ".") return "is not written plainly ('//', '/./')";
    if (part == ".git") return "is git's own, which is not in the copy";
  }
  return {};
}

Result<std::vector<DiffFile>> read_diff(std::string_view text) { return Reader(text).run(); }

}  // namespace muster::code_patch
