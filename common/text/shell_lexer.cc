#include "common/text/shell_lexer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace muster {
namespace {

// A here-document's word may have a $(...) with a here-document. No real script nests them deeper.
constexpr int kDelimitersMost = 64;

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) {
  return blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
}
bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void ShellLexer::leave_open(std::string_view what, std::size_t from) {
  if (open_) return;
  const auto lines = std::ranges::count(text_.substr(0, from), '\n');
  open_ = Open{.what = what, .line = static_cast<std::size_t>(lines) + 1};
}

void ShellLexer::begin_command() {
  command_ = true;
  declaring_ = naming_ = target_ = false;
}

ShellToken ShellLexer::token(ShellToken::Kind kind, std::size_t from) {
  line_ +=
      static_cast<std::size_t>(std::ranges::count(text_.substr(counted_, from - counted_), '\n'));
  counted_ = from;
  return {.kind = kind, .at = from, .line = line_, .text = text_.substr(from, at_ - from)};
}

std::optional<ShellToken> ShellLexer::next() {
  using enum ShellToken::Kind;
  if (bodies_ && !here_.empty()) return here_document_text();
  bodies_ = false;
  skip_blanks();
  if (at_ >= text_.size()) {
    if (test_) leave_open("bracket", *test_);
    for (const Here& here : here_) leave_open("here-document", here.from);
    return std::nullopt;
  }
  const std::size_t from = at_;
  const char c = text_[at_];
  // [[ $a =~ (#|b) ]] has no comment
  if (c == '#' && (!test_ || blank(text_[from - 1]) || text_[from - 1] == '\n')) {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return token(Comment, from);
  }
  if (test_) return test_word();
  if (c == '\\' && following() == '\n') {
    at_ += 2;
    return token(Continuation, from);
  }
  if (c == '<' || c == '>' || (c == '&' && following() == '>')) return redirection(from);
  if (text_.substr(at_).starts_with("((")) {
    skip_bracketed({.close = ')'});
    begin_command();
    return token(Word, from);
  }
  if (ends_word(c)) {
    ++at_;
    begin_command();
    bodies_ = c == '\n';
    return token(Operator, from);
  }
  return word();
}

void ShellLexer::skip_blanks() {
  while (at_ < text_.size() && (blank(text_[at_]) || (test_ && text_[at_] == '\n'))) ++at_;
}

ShellToken ShellLexer::word() {
  const std::size_t from = at_;
  skip_word();
  const bool before_redirection = at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>') &&
                                  is_number(text_.substr(from, at_ - from));  // 2>&1
  if (before_redirection && !target_) return redirection(from);
  ShellToken found = token(ShellToken::Kind::Word, from);
  count_in(found);
  return found;
}

// Follows what the word means for the words behind it.
void ShellLexer::count_in(ShellToken& word) {
  word.target = std::exchange(target_, false);
  if (word.target || std::exchange(naming_, false)) return;
  word.assigning = command_ || declaring_;
  if (!command_ || !shell_assignment(word.text).name.empty()) return;
  constexpr auto kStill = std::to_array<std::string_view>(
      {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time"});
  constexpr auto kDeclare =
      std::to_array<std::string_view>({"export", "readonly", "declare", "local", "typeset"});
  if (std::ranges::find(kStill, word.text) != kStill.end()) return;
  naming_ = word.text == "function";
  if (naming_) return;
  if (word.text == "[[") test_ = word.at;
  command_ = false;
  declaring_ = std::ranges::find(kDeclare, word.text) != kDeclare.end();
}

// Between [[ and ]] stand words and patterns.
ShellToken ShellLexer::test_word() {
  const std::size_t from = at_;
  skip_word();
  const std::string_view rest = text_.substr(from);
  if (at_ == from) at_ += rest.starts_with("&&") || rest.starts_with("||") ? 2 : 1;
  ShellToken found = token(ShellToken::Kind::Word, from);
  if (found.text == "]]") test_.reset();
  return found;
}

// At the operator; `from` is its number, if it has one.
ShellToken ShellLexer::redirection(std::size_t from) {
  if (text_[at_] == '&') ++at_;
  const std::string_view rest = text_.substr(at_);
  if (following() == '(') {
    ++at_;
    skip_bracketed({.close = ')', .commands = true});
    target_ = false;
    return token(ShellToken::Kind::Process, from);
  }
  if (rest.starts_with("<<") && !rest.starts_with("<<<")) {
    read_delimiter();
    return token(ShellToken::Kind::Redirection, from);
  }
  if (rest.starts_with("<<<"))
    at_ += 3;
  else
    at_ += rest.starts_with(">>") && !rest.starts_with(">>(") ? 2 : 1;
  if (!rest.starts_with("<<<") && at_ < text_.size() && (text_[at_] == '&' || text_[at_] == '|'))
    ++at_;
  target_ = true;
  return token(ShellToken::Kind::Redirection, from);
}

// At the "<<" of a here-document.
void ShellLexer::read_delimiter() {
  Here here{.from = at_};
  at_ += 2;
  if (at_ < text_.size() && text_[at_] == '-') {
    here.tabs = true;
    ++at_;
  }
  while (at_ < text_.size() && blank(text_[at_])) ++at_;
  const std::size_t from = at_;
  if (delimiters_ < kDelimitersMost) {
    ++delimiters_;
    skip_word();
    --delimiters_;
  } else {
    while (at_ < text_.size() && !ends_word(text_[at_])) ++at_;
  }
  for (const char c : text_.substr(from, at_ - from))
    if (c != '\'' && c != '"' && c != '\\') here.end += c;
  if (!here.end.empty()) here_.push_back(std::move(here));
}

ShellToken ShellLexer::here_document_text() {
  const std::size_t from = at_;
  pass_here_document();
  ShellToken found = token(ShellToken::Kind::HereDocument, from);
  if (open_) return found;
  // without the line that ends it
  const std::string_view lines =
      found.text.substr(0, found.text.size() - found.text.ends_with('\n'));
  found.text = found.text.substr(0, lines.rfind('\n') + 1);  // npos + 1 is 0
  return found;
}

// Moves past the text of the first of here_, and its end.
void ShellLexer::pass_here_document() {
  const Here here = std::move(here_.front());
  here_.pop_front();
  while (at_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    at_ = std::min(end + 1, text_.size());
    while (here.tabs && line.starts_with('\t')) line.remove_prefix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line == here.end) return;
  }
  leave_open("here-document", here.from);
}

void ShellLexer::skip_word() {
  const std::size_t from = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool array = c == '(' && at_ > from && text_[at_ - 1] == '=';
    if (array) {
      skip_bracketed({.close = ')', .commands = true});
    } else if (ends_word(c)) {
      return;
    } else if (c == '\\') {
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '\'') {
      skip_single();
    } else if (c == '"' || c == '`') {
      skip_bracketed({.close = c, .string = true});
    } else if (c == '$' && following() == '\'') {
      skip_escaped();
    } else if (c == '$' && (following() == '(' || following() == '{')) {
      ++at_;
      skip_bracketed(opened(false));
    } else {
      ++at_;
    }
  }
}

void ShellLexer::skip_single() {
  const std::size_t end = text_.find('\'', at_ + 1);
  if (end == std::string_view::npos) leave_open("quote", at_);
  at_ = end == std::string_view::npos ? text_.size() : end + 1;
}

void ShellLexer::skip_escaped() {  // $'...'
  const std::size_t from = at_;
  for (at_ += 2; at_ < text_.size() && text_[at_] != '\''; ++at_)
    if (text_[at_] == '\\') ++at_;
  if (at_ >= text_.size()) leave_open("quote", from);
  at_ = std::min(at_ + 1, text_.size());
}

// At the bracket of "$(", "$((" or "${".
ShellLexer::Level ShellLexer::opened(bool in_string) {
  if (text_[at_] == '(') return {.close = ')', .commands = following() != '('};
  if (!in_string) return {.close = '}'};
  // Within "...", ' quotes in patterns ("${x#'a'}"), not in words ("${x:-it's}").
  std::size_t at = at_ + 1;
  if (at < text_.size() && (text_[at] == '!' || text_[at] == '#')) ++at;
  const std::size_t name = at;
  while (at < text_.size() && name_char(text_[at])) ++at;
  if (at == name) ++at;  // "${@...}"
  if (at < text_.size() && text_[at] == '[') {
    if (square_ < at) square_ = std::min(text_.find(']', at), text_.size() - 1);
    at = square_ + 1;
  }
  return {.close = '}',
          .string = at >= text_.size() ||
                    std::string_view("#%/^,").find(text_[at]) == std::string_view::npos};
}

// Moves from an opening character to after the one that closes it, including everything nested
// between them.
void ShellLexer::skip_bracketed(Level first) {
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
    } else if (c == '$' && following() == '\'' && !top.string) {
      skip_escaped();
    } else if (c == '$' && (following() == '(' || following() == '{')) {
      ++at_;
      levels.push_back(opened(top.string));
      levels.back().from = at_++;
    } else if (c == '`' || c == '"') {
      levels.push_back({.close = c, .string = true, .from = at_++});
    } else if (c == '(' && top.close == ')') {
      // ((...)) is arithmetic: its << shifts
      const bool commands = top.commands && following() != '(';
      levels.push_back({.close = ')', .commands = commands, .from = at_++});
    } else if (top.commands && c == '#' && ends_word(text_[at_ - 1])) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (top.commands && text_.substr(at_).starts_with("<<") &&
               !text_.substr(at_).starts_with("<<<")) {
      read_delimiter();
    } else if (c == '<' && text_.substr(at_).starts_with("<<<")) {
      at_ += 3;
    } else if (top.commands && c == '\n') {
      ++at_;
      while (!here_.empty()) pass_here_document();
    } else {
      ++at_;
    }
  }
  if (levels.empty()) return;
  const bool quote = levels.back().close == '"' || levels.back().close == '`';
  leave_open(quote ? "quote" : "bracket", levels.back().from);
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

}  // namespace muster
