// Runs a task on a loop, for tests of what lives there. The caller is on another thread, and goes
// on when the task has run.
#pragma once

#include <functional>
#include <future>

#include "common/async/loop.h"

namespace muster::test {

inline void run_on(async::Loop& loop, const std::function<void()>& task) {
  std::promise<void> done;
  loop.post("test", [&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace muster::test
