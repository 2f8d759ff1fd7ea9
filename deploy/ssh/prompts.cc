#include "deploy/ssh/prompts.h"

#include <string_view>

namespace muster::ssh {
namespace {

bool same(const std::optional<Secret>& one, const Secret& other) {
  return one && std::string_view(one->c_str()) == other.c_str();
}

}  // namespace

Question passphrase_question(const std::string& path) {
  return {.kind = Question::Kind::Passphrase,
          .subject = path,
          .text = "passphrase of the key '" + path + "'"};
}

std::optional<Secret> PromptOnce::ask(const Question& question) {
  const MutexLock lock(mutex_);
  const auto key = std::make_pair(question.kind, question.subject);
  auto found = answers_.find(key);
  while (found != answers_.end() && found->second.trying) {
    changed_.wait(mutex_);
    found = answers_.find(key);
  }
  if (found == answers_.end())
    found = answers_.emplace(key, Answer{.secret = inner_.ask(question)}).first;
  Answer& answer = found->second;
  if (!answer.secret) return std::nullopt;
  answer.trying = question.is_tried && !answer.taken;
  return answer.secret->copy();
}

void PromptOnce::tried(const Question& question) {
  const MutexLock lock(mutex_);
  const auto found = answers_.find(std::make_pair(question.kind, question.subject));
  if (found != answers_.end()) found->second.trying = false;
  changed_.notify_all();
}

bool PromptOnce::refused(const Question& question, const Secret& answer) {
  const MutexLock lock(mutex_);
  const auto found = answers_.find(std::make_pair(question.kind, question.subject));
  if (found == answers_.end() || !same(found->second.secret, answer)) return false;
  if (found->second.taken) return true;
  answers_.erase(found);
  return false;
}

// The first answer that a host took stays: one that came meanwhile was for another host.
void PromptOnce::accepted(const Question& question, const Secret& answer) {
  const MutexLock lock(mutex_);
  Answer& known = answers_[std::make_pair(question.kind, question.subject)];
  if (!known.taken) known = {.secret = answer.copy(), .taken = true};
}

bool PromptOnce::knows(const Question& question) {
  const MutexLock lock(mutex_);
  return answers_.contains(std::make_pair(question.kind, question.subject));
}

}  // namespace muster::ssh
