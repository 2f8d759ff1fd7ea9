#include "deploy/ssh/prompts.h"

#include <string_view>

namespace muster::ssh {

std::optional<Secret> PromptOnce::ask(const Question& question) {
  const MutexLock lock(mutex_);
  const auto key = std::make_pair(question.kind, question.subject);
  auto found = answers_.find(key);
  if (found == answers_.end()) found = answers_.emplace(key, inner_.ask(question)).first;
  if (!found->second) return std::nullopt;
  return found->second->copy();
}

void PromptOnce::refused(const Question& question, const Secret& answer) {
  const MutexLock lock(mutex_);
  const auto found = answers_.find(std::make_pair(question.kind, question.subject));
  if (found == answers_.end() || !found->second) return;
  if (std::string_view(found->second->c_str()) == answer.c_str()) answers_.erase(found);
}

}  // namespace muster::ssh
