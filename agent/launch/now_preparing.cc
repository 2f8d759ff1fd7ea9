#include "agent/launch/now_preparing.h"

#include <utility>

namespace muster::agent {
namespace {

thread_local StartDoing* doing_here = nullptr;

}  // namespace

void prepare_for(StartDoing* doing) { doing_here = doing; }

void now_preparing(std::string what) {
  if (doing_here == nullptr) return;
  const std::lock_guard lock(doing_here->mutex);
  doing_here->what = std::move(what);
}

}  // namespace muster::agent
