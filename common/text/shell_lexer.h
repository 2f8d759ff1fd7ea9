// Splits a shell script into tokens with their places. Pure; linear time.
//
// The texts are unchanged: nothing is expanded, and quotes stay. Everything inside of quotes,
// $(...), `...`, ${...} and the brackets of an array belongs to its word, with the comments and
// here-documents there. [[ ... ]] is a row of words and comments, as its operators are no shell
// operators.
//
// A quote, bracket or here-document that is never closed takes the rest of the script, and open()
// names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

struct ShellToken {
  enum class Kind : std::uint8_t {
    Word,         // also ((...)), after which another command begins
    Operator,     // one character: ; & | ( ) or a line end
    Redirection,  // "2>&", "<<<", "<<-'END'": with its number, and with the word of a here-document
    Process,      // <(...) or >(...)
    HereDocument,  // the lines of its text; the delimiter's line is not among them
    Comment,       // from # up to the line end
    Continuation,  // a backslash and a line end
  };
  Kind kind = Kind::Word;
  std::size_t at = 0, line = 1;  // where it begins
  std::string_view text;
  bool target = false;  // Word: of the redirection before it
  // Word: NAME=VALUE is an assignment here: in front of a program, or after export, readonly,
  // declare, local or typeset
  bool assigning = false;
};

class ShellLexer {
 public:
  explicit ShellLexer(std::string_view script) : text_(script) {}

  // Nothing: the script has ended.
  std::optional<ShellToken> next();

  struct Open {
    std::string_view what;  // "quote", "bracket" or "here-document"
    std::size_t line = 1;
  };
  // The first part that is never closed. Complete when next() has returned nothing.
  [[nodiscard]] const std::optional<Open>& open() const { return open_; }

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

  [[nodiscard]] char following() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
  void leave_open(std::string_view what, std::size_t from);
  void begin_command();
  ShellToken token(ShellToken::Kind kind, std::size_t from);

  void skip_blanks();
  ShellToken word();
  ShellToken test_word();
  void count_in(ShellToken& word);
  ShellToken redirection(std::size_t from);
  ShellToken here_document_text();
  void read_delimiter();
  void pass_here_document();

  void skip_word();
  void skip_single();
  void skip_escaped();
  [[nodiscard]] Level opened(bool in_string);
  void skip_bracketed(Level first);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0, line_ = 1;  // the line of position counted_
  std::size_t square_ = 0;              // the next ']', if it is not before at_
  int delimiters_ = 0;                  // nested words of here-documents
  bool command_ = true;                 // a program may be named here
  bool declaring_ = false, naming_ = false, target_ = false;
  bool bodies_ = false;              // the texts of here_ begin here
  std::optional<std::size_t> test_;  // position of the [[ that is not closed yet
  std::deque<Here> here_;
  std::optional<Open> open_;
};

// The length of the variable name at the beginning of `text`: letters, digits and _.
std::size_t shell_name_length(std::string_view text);

// NAME=VALUE, NAME+=VALUE or NAME=(...). Both fields are empty if the word is no assignment.
struct ShellAssignment {
  std::string_view name, value;
};
ShellAssignment shell_assignment(std::string_view word);

}  // namespace muster
