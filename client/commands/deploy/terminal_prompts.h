// TerminalPrompts asks the person at the terminal for a password, without showing it. A verb owns
// it, inside of a ssh::PromptOnce, which passes on one question at a time. Without a terminal it
// has no answer.
#pragma once

#include <optional>

#include "deploy/ssh/prompts.h"

namespace muster::client {

class TerminalPrompts final : public ssh::Prompts {
 public:
  std::optional<ssh::Secret> ask(const ssh::Question& question) override;
};

}  // namespace muster::client
