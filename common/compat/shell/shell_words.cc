#include "common/compat/shell/shell_words.h"

#include <utility>

#include "common/text/shell_lexer.h"

namespace muster::launcher {

std::vector<ShellCommand> shell_commands(std::string_view script) {
  std::vector<ShellCommand> found;
  ShellCommand command;
  const auto end_command = [&] {
    if (!command.empty()) found.push_back(std::exchange(command, {}));
  };
  ShellLexer lexer(script);
  while (const auto token = lexer.next()) {
    if (token->kind == ShellToken::Kind::Operator) end_command();
    if (token->kind != ShellToken::Kind::Word || token->target) continue;
    command.push_back({.line = token->line, .text = token->text});
    if (token->text.starts_with("((")) end_command();
  }
  end_command();
  return found;
}

}  // namespace muster::launcher
