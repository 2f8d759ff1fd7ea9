// The order of what one agent is sent, with a reader of any speed.
#include "controller/core/send_queue.h"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

v1::Order order_of(const std::string& job) {
  v1::Order order;
  order.set_job_id(job);
  order.set_attempt(1);
  return order;
}
NodeOrders orders(const std::vector<std::string>& stops, const std::vector<std::string>& runs,
                  const std::vector<std::string>& running) {
  NodeOrders made;
  for (const std::string& job : stops) {
    v1::Order& order = *made.standing.add_orders();
    order = order_of(job);
    order.mutable_stop();
  }
  for (const std::string& job : runs) {
    made.runs.push_back(order_of(job));
    made.runs.back().mutable_run();
  }
  for (const std::string& job : running) made.running.insert({JobId(job), AttemptNo(1)});
  return made;
}
// "stop a, run b", "fact ack 3", ...; empty: nothing waits.
std::string next(SendQueue& queue) {
  const auto message = queue.next();
  if (!message) return "";
  if (message->has_welcome()) return "welcome";
  if (message->has_files_wanted()) return "files " + message->files_wanted().ticket();
  if (message->has_store_check()) return "check " + message->store_check().ticket();
  if (message->has_fact_ack()) return "fact ack " + std::to_string(message->fact_ack().sequence());
  if (message->has_heartbeat_ack())
    return "heartbeat ack " + std::to_string(message->heartbeat_ack().number());
  std::string text = "orders";
  for (const v1::Order& order : message->orders().orders())
    text += (order.has_run() ? " run " : " stop ") + order.job_id();
  return text;
}
v1::FactAck fact_ack(std::uint64_t sequence) {
  v1::FactAck ack;
  ack.set_sequence(sequence);
  return ack;
}
v1::HeartbeatAck heartbeat_ack(std::uint64_t number) {
  v1::HeartbeatAck ack;
  ack.set_number(number);
  return ack;
}

TEST(SendQueue, WelcomeStopsFilesAndThenLaunchesInTurnsWithAcknowledgements) {
  SendQueue queue;
  queue.put(heartbeat_ack(1));
  queue.put(fact_ack(1));
  queue.put(orders({"old"}, {"a", "b"}, {"a", "b"}));
  v1::FilesWanted files;
  files.set_ticket("t");
  v1::StoreCheck check;
  check.set_ticket("c");
  EXPECT_TRUE(queue.put(check));
  EXPECT_TRUE(queue.put(files));
  queue.put(v1::Welcome());
  for (const char* expected :
       {"welcome", "orders stop old", "files t", "check c", "orders stop old run a", "fact ack 1",
        "orders stop old run b", "heartbeat ack 1", ""})
    EXPECT_EQ(next(queue), expected);
}

TEST(SendQueue, TheLatestOfAKindReplacesTheOneBeforeAndLaunchesWait) {
  SendQueue queue;
  queue.put(orders({}, {"a", "b"}, {"a", "b"}));
  queue.put(orders({"x"}, {"c"}, {"a", "c"}));
  for (const std::uint64_t number : {1U, 2U, 3U}) queue.put(heartbeat_ack(number));
  for (const char* expected :
       {"orders stop x", "orders stop x run a", "heartbeat ack 3", "orders stop x run c", ""})
    EXPECT_EQ(next(queue), expected);
}

TEST(SendQueue, OrdersWithoutAnythingAreSentToo) {
  SendQueue queue;
  queue.put(orders({}, {}, {}));
  EXPECT_EQ(next(queue), "orders");
  EXPECT_EQ(next(queue), "");
  queue.put(orders({}, {"a"}, {"a"}));
  EXPECT_EQ(next(queue), "orders run a") << "without stops, the launch is the whole message";
  EXPECT_EQ(next(queue), "");
}

// Regression: two nodes of a job could fill the controller's memory: one asked for files of the
// other without end, and the other read nothing.
TEST(SendQueue, RequestsForFilesAndChecksHaveABound) {
  SendQueue queue;
  for (std::size_t i = 0; i < SendQueue::kFilesMost; ++i) ASSERT_TRUE(queue.put(v1::FilesWanted()));
  EXPECT_FALSE(queue.put(v1::FilesWanted()));
  EXPECT_EQ(next(queue), "files ");
  EXPECT_TRUE(queue.put(v1::FilesWanted())) << "one was taken";
  for (std::size_t i = 0; i < SendQueue::kChecksMost; ++i) ASSERT_TRUE(queue.put(v1::StoreCheck()));
  EXPECT_FALSE(queue.put(v1::StoreCheck()));
}

}  // namespace
}  // namespace muster::core
