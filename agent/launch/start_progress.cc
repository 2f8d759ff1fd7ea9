#include "agent/launch/start_progress.h"

#include <utility>

namespace muster::agent {

StartProgress::Now StartProgress::now() const {
  Now now;
  std::function<std::string()> text;
  {
    const MutexLock lock(mutex_);
    now = now_;
    text = text_;
  }
  if (text) now.text = text();
  return now;
}

void StartProgress::begin(StartStep step, std::string sentence, Duration quick_before) {
  const MutexLock lock(mutex_);
  now_ = {.step = step,
          .since = system_clock().now().boot,
          .quick_before = quick_before,
          .sentence = std::move(sentence),
          .text = {}};
  text_ = nullptr;
}

void StartProgress::describe(std::string sentence) {
  const MutexLock lock(mutex_);
  now_.sentence = std::move(sentence);
}

void StartProgress::next_part(std::string sentence) {
  const MutexLock lock(mutex_);
  now_.since = system_clock().now().boot;
  now_.sentence = std::move(sentence);
}

void StartProgress::set_text(std::function<std::string()> text) {
  const MutexLock lock(mutex_);
  text_ = std::move(text);
}

}  // namespace muster::agent
