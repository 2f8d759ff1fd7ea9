#include "deploy/ssh/prompts.h"

namespace muster::ssh {

std::optional<Secret> PromptOnce::ask(const Question& question) {
  const MutexLock lock(mutex_);
  const auto key = std::make_pair(question.kind, question.subject);
  auto found = answers_.find(key);
  if (found == answers_.end()) found = answers_.emplace(key, inner_.ask(question)).first;
  if (!found->second) return std::nullopt;
  return found->second->copy();
}

}  // namespace muster::ssh
