// What a thread that prepares a start does at the moment. StartThreads owns one for each start that
// is at work (start/start_prepare.h); the thread writes it and the loop reads it.
#pragma once

#include <mutex>
#include <string>

#include "common/base/time.h"

namespace muster::agent {

struct StartDoing {
  const BootTime since = system_clock().now().boot;
  std::mutex mutex;
  std::string what = "its checks";
};

// From now on the calling thread prepares the start of `doing`; nullptr: none any more.
void prepare_for(StartDoing* doing);

// Records what the start on this thread does from now on. If the start hangs, the sentence for the
// starts that are refused because of it shows this. On a thread that does not belong to
// StartThreads it does nothing.
void now_preparing(std::string what);

}  // namespace muster::agent
