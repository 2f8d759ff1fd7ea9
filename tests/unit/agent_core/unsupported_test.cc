// Regression: the agent silently ignored an order of an unknown kind if the node had the attempt,
// and a newer controller waited for ever. Now the agent reports such an order, and what the node
// has stays as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/reconcile.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::Order order(const std::string& job, std::uint32_t attempt) {
  v1::Order made;
  made.set_job_id(job);
  made.set_attempt(attempt);
  return made;
}

TEST(Unsupported, NamesEachAttemptOnceAndLeavesItAlone) {
  v1::Orders orders;
  *orders.add_orders() = order("j1", 2);
  *orders.add_orders() = order("j1", 2);
  *orders.add_orders() = order("j2", 1);
  *orders.add_orders() = order("j3", 1);
  orders.mutable_orders(3)->mutable_stop();
  EXPECT_THAT(unsupported(orders),
              ElementsAre(RunKey(JobId("j1"), AttemptNo(2)), RunKey(JobId("j2"), AttemptNo(1))));
  EXPECT_THAT(unsupported(v1::Orders()), IsEmpty());

  RunSeen running;
  running.launch_sound = true;
  running.boot_id = BootId("b");
  running.worker = WorkerState::Alive;
  orders.mutable_orders()->DeleteSubrange(1, 3);
  EXPECT_THAT(reconcile({.instance = InstanceId("i"), .boot_id = BootId("b")}, &orders,
                        {{RunKey(JobId("j1"), AttemptNo(2)), running}}, false),
              IsEmpty());
}

}  // namespace
}  // namespace muster::agent
