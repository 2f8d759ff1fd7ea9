#include "client/commands/deploy/terminal_prompts.h"

#include <utility>

#include "client/commands/call/hidden_line.h"

namespace muster::client {

std::optional<ssh::Secret> TerminalPrompts::ask(const ssh::Question& question) {
  auto answer = ask_hidden(question.text);
  if (!answer) return std::nullopt;
  return ssh::Secret(*std::move(answer));
}

}  // namespace muster::client
