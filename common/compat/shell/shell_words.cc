#include "common/compat/shell/shell_words.h"

#include <algorithm>
#include <deque>
#include <string>

namespace muster::launcher {
namespace {

constexpr std::size_t kNestingMost = 64;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) {
  return blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
}
bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class WordScanner {
 public:
  explicit WordScanner(std::string_view text) : text_(text) {}

  std::vector<ShellCommand> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (blank(c)) {
        ++at_;
      } else if (c == '\\' && next() == '\n') {
        step(2);
      } else if (c == '\n') {
        step(1);
        skip_here_documents();
        end_command();
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '<' || c == '>' || (c == '&' && next() == '>')) {
        redirection();
      } else if (text_.substr(at_).starts_with("((")) {
        word();
        end_command();
      } else if (ends_word(c)) {
        ++at_;
        end_command();
      } else {
        word();
      }
    }
    end_command();
    return std::move(found_);
  }

 private:
  struct Here {
    std::string end;
    bool tabs = false;
  };

  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  void step(std::size_t count) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_)
      if (text_[at_] == '\n') ++line_;
  }
  void step_to(std::size_t end) { step(std::min(end, text_.size()) - at_); }

  void end_command() {
    if (!command_.empty()) found_.push_back(std::move(command_));
    command_.clear();
  }

  void word() {
    ShellWord found{.line = line_, .text = {}};
    const std::size_t from = at_;
    pass_word();
    found.text = text_.substr(from, at_ - from);
    const bool number = found.text.find_first_not_of("0123456789") == std::string_view::npos;
    // 2>&1
    const bool of_redirection =
        number && at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>');
    if (!of_redirection) command_.push_back(found);
  }

  // Moves past the word that begins here, including everything nested in it. Text nested deeper
  // than any real script is taken as plain text.
  void pass_word() {
    const std::size_t from = at_;
    std::string open;  // closing character of each level
    while (at_ < text_.size()) {
      const char c = text_[at_], top = open.empty() ? '\0' : open.back();
      // Between "..." a ' has no special meaning, except inside a $(...) there.
      const std::size_t last = open.find_last_of("\")");
      const bool in_string = last != std::string::npos && open[last] == '"';
      const bool deep = open.size() >= kNestingMost;
      const bool bracket =
          c == '(' && (top == ')' || (open.empty() && (at_ == from || text_[at_ - 1] == '=')));
      if (open.empty() && !bracket && ends_word(c)) return;
      if (c == '\\') {
        step(2);
      } else if (!open.empty() && c == top) {
        open.pop_back();
        step(1);
        if (open.empty() && text_[from] == '(') return;  // ((...))
      } else if (c == '\'' && !in_string) {
        step(1);
        step_to(text_.find('\'', at_));
        step(1);
      } else if (deep) {
        step(1);
      } else if (c == '"' || c == '`') {
        open += c;
        step(1);
      } else if (c == '$' && (next() == '(' || next() == '{')) {
        open += next() == '(' ? ')' : '}';
        step(2);
      } else if (bracket) {
        open += ')';
        step(1);
      } else if (c == '#' && top == ')' && blank_before()) {
        step_to(text_.find('\n', at_));
      } else {
        step(1);
      }
    }
  }
  [[nodiscard]] bool blank_before() const {
    return at_ > 0 && (blank(text_[at_ - 1]) || text_[at_ - 1] == '\n');
  }

  // Skips a redirection with its target, which is not a word of the command.
  void redirection() {
    if (text_.substr(at_).starts_with("<<") && !text_.substr(at_).starts_with("<<<"))
      return here_document();
    while (at_ < text_.size() &&
           std::string_view("<>&|").find(text_[at_]) != std::string_view::npos)
      step(1);
    while (at_ < text_.size() && blank(text_[at_])) step(1);
    if (at_ < text_.size() && (text_[at_] == '(' || !ends_word(text_[at_]))) pass_word();
  }

  void here_document() {
    Here here;
    step(2);
    if (at_ < text_.size() && text_[at_] == '-') {
      here.tabs = true;
      step(1);
    }
    while (at_ < text_.size() && blank(text_[at_])) step(1);
    const std::size_t from = at_;
    if (at_ < text_.size() && !ends_word(text_[at_])) pass_word();
    for (const char c : text_.substr(from, at_ - from))
      if (c != '\'' && c != '"' && c != '\\') here.end += c;
    if (!here.end.empty()) here_.push_back(std::move(here));
  }

  void skip_here_documents() {
    for (; !here_.empty(); here_.pop_front()) {
      for (bool ended = false; !ended && at_ < text_.size();) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        step_to(end + 1);
        while (here_.front().tabs && line.starts_with('\t')) line.remove_prefix(1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        ended = line == here_.front().end;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1;
  ShellCommand command_;
  std::deque<Here> here_;
  std::vector<ShellCommand> found_;
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view script) {
  return WordScanner(script).run();
}

std::size_t shell_name_length(std::string_view text) {
  if (text.empty() || (text.front() >= '0' && text.front() <= '9')) return 0;
  return static_cast<std::size_t>(std::ranges::find_if_not(text, name_char) - text.begin());
}

ShellAssignment shell_assignment(std::string_view word) {
  const std::size_t length = shell_name_length(word);
  const std::string_view rest = word.substr(length);
  if (length == 0 || (!rest.starts_with('=') && !rest.starts_with("+="))) return {};
  return {.name = word.substr(0, length), .value = rest.substr(rest.find('=') + 1)};
}

}  // namespace muster::launcher
