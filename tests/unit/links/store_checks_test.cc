// Checks of stores: who answers one, and what ends it without an answer.
#include "controller/links/store_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace muster::controller {
namespace {

using testing::HasSubstr;

const NodeName kNode("n1");
const InstanceId kInstance("i-1");

class StoreChecksTest : public testing::Test {
 protected:
  std::string open() {
    return *checks_.open(kNode, kInstance, "ann", BootTime{},
                         [this](Result<v1::ReportStoreRequest> found) {
                           EXPECT_FALSE(answer_) << "answered twice";
                           answer_ = std::move(found);
                         });
  }
  static v1::ReportStoreRequest report(const std::string& ticket, const std::string& node = "n1",
                                       const std::string& instance = "i-1") {
    v1::ReportStoreRequest made;
    made.set_node(node);
    made.set_instance(instance);
    made.set_ticket(ticket);
    made.set_count(3);
    return made;
  }

  std::optional<Result<v1::ReportStoreRequest>> answer_;
  StoreChecks checks_;
};

TEST_F(StoreChecksTest, TheNodeThatWasAskedAnswersOnce) {
  const std::string ticket = open();
  EXPECT_EQ(checks_.report(report(ticket, "n2")).error().code, ErrorCode::NotFound);
  EXPECT_EQ(checks_.report(report(ticket, "n1", "i-2")).error().code, ErrorCode::NotFound);
  EXPECT_EQ(checks_.report(report("another")).error().code, ErrorCode::NotFound);
  EXPECT_FALSE(answer_);
  EXPECT_TRUE(checks_.report(report(ticket)));
  ASSERT_TRUE(answer_);
  EXPECT_EQ((*answer_)->count(), 3U);
  EXPECT_EQ(checks_.report(report(ticket)).error().code, ErrorCode::NotFound);
}

TEST_F(StoreChecksTest, ANodeThatGoesIsAnAnswer) {
  open();
  checks_.node_gone(NodeName("n2"));
  EXPECT_FALSE(answer_);
  checks_.node_gone(kNode);
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->error().code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(answer_->error().message, HasSubstr("node 'n1' has gone before it answered"));
}

TEST_F(StoreChecksTest, WhoDoesNotWaitAnyMoreGetsNoAnswer) {
  const std::string ticket = open();
  checks_.drop(ticket);
  EXPECT_EQ(checks_.report(report(ticket)).error().code, ErrorCode::NotFound);
  checks_.node_gone(kNode);
  EXPECT_FALSE(answer_);
}

TEST_F(StoreChecksTest, TheirNumberIsBounded) {
  const auto more = [&](const std::string& user) {
    return checks_.open(kNode, kInstance, user, BootTime{}, [](Result<v1::ReportStoreRequest>) {});
  };
  for (std::size_t i = 0; i < StoreChecks::kOfUserMost; ++i) ASSERT_TRUE(more("ann"));
  EXPECT_THAT(more("ann").error().message, HasSubstr("4 checks of yours are under way"));
  for (std::size_t i = StoreChecks::kOfUserMost; i < StoreChecks::kMost; ++i)
    ASSERT_TRUE(more("user" + std::to_string(i)));
  const auto refused = more("bob");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(checks_.count_of(kNode), StoreChecks::kMost);
}

// A report can be lost: an agent drops it where it cannot reach the controller.
TEST_F(StoreChecksTest, OneThatIsNeverAnsweredEndsWhenAnotherIsAskedFor) {
  open();
  const auto late = BootTime{} + StoreChecks::kLongest + std::chrono::seconds(1);
  ASSERT_TRUE(checks_.open(kNode, kInstance, "bob", late, [](Result<v1::ReportStoreRequest>) {}));
  ASSERT_TRUE(answer_);
  EXPECT_THAT(answer_->error().message, HasSubstr("node 'n1' has not answered"));
  EXPECT_EQ(checks_.count_of(kNode), 1U);
}

}  // namespace
}  // namespace muster::controller
