#include "controller/access/refusals.h"

#include "common/log/log.h"

namespace muster::controller {

void Refusals::note(const std::string& text) {
  const MutexLock lock(mutex_);
  if (noted_.size() > kTextsMost || !noted_.insert(text).second) return;
  if (noted_.size() > kTextsMost) {
    log::warn("calls are refused for more reasons than are written here; no more of them are");
  } else {
    log::warn("a call was refused", {{"why", text}});
  }
}

}  // namespace muster::controller
