#include "common/compat/patch/shell_vars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <vector>

#include "common/compat/patch/document.h"
#include "common/engine/ranktable/words.h"
#include "common/text/words.h"

namespace muster::patch {
namespace {

using ranktable::shown;

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) {
  return blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
}

struct Assignment {
  std::string_view name;
  std::size_t from = 0, to = 0;  // positions of the value
  bool array = false;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<Assignment> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (blank(c)) {
        ++at_;
      } else if (c == '\\' && next() == '\n') {
        at_ += 2;
      } else if (c == '\n') {
        ++at_;
        skip_here_documents();
        begin_command();
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '<' || c == '>') {
        redirection();
      } else if (c == '&' && next() == '>') {
        ++at_;
        redirection();
      } else if (text_.substr(at_).starts_with("((")) {
        skip_bracketed({.close = ')'});
        begin_command();
      } else if (std::string_view(";&|()").find(c) != std::string_view::npos) {
        ++at_;
        begin_command();
      } else {
        word();
      }
    }
    for (const Here& here : here_) leave_open("here-document", here.from);
    return std::move(found_);
  }
  // The construct that is still open at the end of the text: the scanner has skipped everything
  // after its opening. Empty: there is none.
  [[nodiscard]] const std::string& open() const { return open_; }

 private:
  struct Level {
    char close = ')';
    bool commands = false;  // comments and here-documents are possible
    bool string = false;    // a ' has no special meaning
    std::size_t from = 0;
  };
  struct Here {
    std::string end;
    bool tabs = false;
    std::size_t from = 0;
  };

  void leave_open(std::string_view what, std::size_t from) {
    if (open_.empty())
      open_ = fmt::format("a {} opened in line {} is never closed", what,
                          std::ranges::count(text_.substr(0, from), '\n') + 1);
  }

  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  void begin_command() {
    command_ = true;
    declaring_ = target_ = naming_ = false;
  }

  void word() {
    const std::size_t from = at_;
    if (target_) {  // target of a redirection
      skip_word();
      target_ = false;
      return;
    }
    if (naming_) {  // name of a function
      skip_word();
      naming_ = false;
      return;
    }
    if (command_ || declaring_) {
      std::size_t end = at_;
      while (end < text_.size() && name_char(text_[end])) ++end;
      const bool named = end > at_ && (text_[at_] < '0' || text_[at_] > '9') &&
                         end < text_.size() && text_[end] == '=';
      if (named) {
        Assignment assignment{.name = text_.substr(at_, end - at_), .from = end + 1};
        at_ = end + 1;
        assignment.array = at_ < text_.size() && text_[at_] == '(';
        if (assignment.array)
          skip_bracketed({.close = ')', .commands = true});
        else
          skip_word();
        assignment.to = at_;
        found_.push_back(assignment);
        return;
      }
    }
    skip_word();
    if (!command_) return;
    constexpr auto kStill = std::to_array<std::string_view>(
        {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time"});
    constexpr auto kDeclare =
        std::to_array<std::string_view>({"export", "readonly", "declare", "local", "typeset"});
    const std::string_view text = text_.substr(from, at_ - from);
    if (std::ranges::find(kStill, text) != kStill.end()) return;
    naming_ = text == "function";
    if (naming_) return;
    if (text == "[[") skip_test(from);
    command_ = false;
    declaring_ = std::ranges::find(kDeclare, text) != kDeclare.end();
  }

  // Moves from after "[[" to after its "]]": the words between them are patterns and not commands.
  void skip_test(std::size_t open) {
    while (at_ < text_.size()) {
      const std::size_t from = at_;
      skip_word();
      if (text_.substr(from, at_ - from) == "]]") return;
      if (at_ == from) ++at_;
    }
    leave_open("bracket", open);
  }

  void redirection() {
    if (next() == '(') {  // process substitution: a word
      ++at_;
      skip_bracketed({.close = ')', .commands = true});
      target_ = false;
      return;
    }
    if (text_.substr(at_).starts_with("<<<")) {
      at_ += 3;
      target_ = true;
      return;
    }
    if (!text_.substr(at_).starts_with("<<")) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '&' || text_[at_] == '|')) ++at_;
      target_ = true;
      return;
    }
    here_document();
  }

  void here_document() {
    Here here{.from = at_};
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '-') {
      here.tabs = true;
      ++at_;
    }
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
    const std::size_t from = at_;
    skip_word();
    for (const char c : text_.substr(from, at_ - from))
      if (c != '\'' && c != '"' && c != '\\') here.end += c;
    if (!here.end.empty()) here_.push_back(std::move(here));
  }

  void skip_here_documents() {
    for (; !here_.empty(); here_.pop_front()) {
      bool ended = false;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        while (here_.front().tabs && line.starts_with('\t')) line.remove_prefix(1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        ended = line == here_.front().end;
        if (ended) break;
      }
      if (!ended) leave_open("here-document", here_.front().from);
    }
  }

  void skip_word() {
    while (at_ < text_.size() && !ends_word(text_[at_])) {
      const char c = text_[at_];
      if (c == '\\') {
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == '\'') {
        skip_single();
      } else if (c == '"' || c == '`') {
        skip_bracketed({.close = c, .string = true});
      } else if (c == '$' && next() == '\'') {
        skip_escaped();
      } else if (c == '$' && (next() == '(' || next() == '{')) {
        ++at_;
        skip_bracketed(opened(false));
      } else {
        ++at_;
      }
    }
  }

  void skip_single() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) leave_open("quote", at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
  }
  void skip_escaped() {  // $'...'
    const std::size_t from = at_;
    for (at_ += 2; at_ < text_.size() && text_[at_] != '\''; ++at_)
      if (text_[at_] == '\\') ++at_;
    if (at_ >= text_.size()) leave_open("quote", from);
    at_ = std::min(at_ + 1, text_.size());
  }

  // At the bracket of "$(", "$((" or "${".
  [[nodiscard]] Level opened(bool in_string) const {
    if (text_[at_] == '(') return {.close = ')', .commands = next() != '('};
    if (!in_string) return {.close = '}'};
    // Within "...", ' quotes in patterns ("${x#'a'}"), not in words ("${x:-it's}").
    std::size_t at = at_ + 1;
    if (at < text_.size() && (text_[at] == '!' || text_[at] == '#')) ++at;
    const std::size_t name = at;
    while (at < text_.size() && name_char(text_[at])) ++at;
    if (at == name) ++at;  // "${@...}"
    if (at < text_.size() && text_[at] == '[')
      at = std::min(text_.find(']', at), text_.size() - 1) + 1;
    return {.close = '}',
            .string = at >= text_.size() ||
                      std::string_view("#%/^,").find(text_[at]) == std::string_view::npos};
  }

  // Moves from an opening character to after the one that closes it, including everything nested
  // between them.
  void skip_bracketed(Level first) {
    first.from = at_;
    std::vector<Level> levels = {first};
    ++at_;
    while (at_ < text_.size() && !levels.empty()) {
      const char c = text_[at_];
      const Level top = levels.back();
      if (c == '\\') {
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == top.close) {
        levels.pop_back();
        ++at_;
      } else if (top.close == '`') {
        ++at_;
      } else if (c == '\'' && !top.string) {
        skip_single();
      } else if (c == '$' && next() == '\'' && !top.string) {
        skip_escaped();
      } else if (c == '$' && (next() == '(' || next() == '{')) {
        ++at_;
        levels.push_back(opened(top.string));
        levels.back().from = at_++;
      } else if (c == '`' || c == '"') {
        levels.push_back({.close = c, .string = true, .from = at_++});
      } else if (c == '(' && top.close == ')') {
        levels.push_back({.close = ')', .commands = top.commands, .from = at_++});
      } else if (top.commands && c == '#' && ends_word(text_[at_ - 1])) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (top.commands && text_.substr(at_).starts_with("<<") &&
                 !text_.substr(at_).starts_with("<<<")) {
        here_document();
      } else if (c == '<' && text_.substr(at_).starts_with("<<<")) {
        at_ += 3;
      } else if (top.commands && c == '\n') {
        ++at_;
        skip_here_documents();
      } else {
        ++at_;
      }
    }
    if (!levels.empty())
      leave_open(levels.back().close == '"' || levels.back().close == '`' ? "quote" : "bracket",
                 levels.back().from);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool command_ = true, declaring_ = false, target_ = false, naming_ = false;
  std::string open_;
  std::deque<Here> here_;
  std::vector<Assignment> found_;
};

}  // namespace

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return name_char(c) || std::string_view("-./:=,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

Result<std::string> replaced_assignments(std::string_view name, std::string_view script,
                                         const Variables& values) {
  const auto no = [name](std::string_view variable, const std::string& why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("replacing '{}=' in '{}': {}", shown(variable), shown_path(name), why));
  };
  if (script.size() > kFileBytesMax)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("changing script '{}': it has {} bytes, at most {}", shown_path(name),
                            script.size(), kFileBytesMax));
  Scanner scanner(script);
  const std::vector<Assignment> found = scanner.run();
  if (!scanner.open().empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("changing script '{}': {}", shown_path(name), scanner.open()));
  std::set<std::string, std::less<>> left;
  for (const auto& [variable, value] : values) left.insert(variable);
  std::string out;
  std::size_t done = 0;
  for (const Assignment& one : found) {
    const auto value = values.find(std::string(one.name));
    if (value == values.end()) continue;
    if (one.array) {
      const auto line = std::ranges::count(script.substr(0, one.from), '\n') + 1;
      return no(one.name,
                fmt::format("line {} makes it a list; only single values are replaced", line));
    }
    left.erase(value->first);
    out += script.substr(done, one.from - done);
    out += shell_word(value->second);
    done = one.to;
  }
  if (!left.empty()) {
    std::set<std::string_view> names;
    for (const Assignment& one : found)
      if (one.name.size() <= 128 && names.size() < 2000) names.insert(one.name);
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view near = nearest(*left.begin(), known);
    return no(*left.begin(),
              "nothing in it assigns that" +
                  (near.empty() ? std::string() : fmt::format("; nearest: '{}'", near)));
  }
  out += script.substr(done);
  return out;
}

}  // namespace muster::patch
