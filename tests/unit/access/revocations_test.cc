// Who is refused after a revocation, and which open streams end. The streams are functions here;
// tests/unit/controller has real ones.
#include "controller/access/revocations.h"

#include <gtest/gtest.h>

#include "common/pki/authority.h"
#include "controller/core/access/fold.h"

namespace muster::controller {
namespace {

class RevocationsTest : public testing::Test {
 protected:
  static pki::Identity identity(pki::Role role, const std::string& name) {
    return {.cluster = "c0ffee", .role = role, .name = name};
  }
  rpc::Caller caller(pki::Role role, const std::string& name, const std::string& key) const {
    return {.is_owner = false,
            .identity = identity(role, name),
            .key = key,
            .not_before = now_ - pki::kClockDifference};
  }
  void revoke(const std::string& node, const std::string& key = {}) {
    core::fold_access(
        records_, now_,
        core::CertificateRevoked{.subject = {.role = core::SubjectRole::Node, .name = node},
                                 .key = key,
                                 .serial = {},
                                 .before = now_,
                                 .why = "lost",
                                 .actor = "owner"});
    revocations_.publish(core::Revoked(records_));
  }
  Revocations::Stay enter(const rpc::Caller& who, std::vector<grpc::Status>& ends) {
    return revocations_.enter(who, [&ends](const grpc::Status& why) { ends.push_back(why); });
  }

  WallTime now_{std::chrono::seconds(1'800'000'000)};
  core::AccessRecords records_;
  Revocations revocations_;
};

TEST_F(RevocationsTest, StreamsOfTheRevokedEndWithTheSentence) {
  std::vector<grpc::Status> first, other, user, owner;
  const auto one = enter(caller(pki::Role::Node, "n1", "k1"), first);
  const auto two = enter(caller(pki::Role::Node, "n2", "k2"), other);
  const auto three = enter(caller(pki::Role::User, "n1", "k3"), user);
  const auto four = enter({.is_owner = true}, owner);
  revoke("n1");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(first[0].error_message(),
            "calling the controller: the certificate of node 'n1' was revoked: lost");
  EXPECT_TRUE(other.empty());
  EXPECT_TRUE(user.empty());
  EXPECT_TRUE(owner.empty());
}

TEST_F(RevocationsTest, AStreamThatIsLateEndsAtOnce) {
  revoke("n1");
  std::vector<grpc::Status> ends;
  const auto stay = enter(caller(pki::Role::Node, "n1", "k1"), ends);
  EXPECT_EQ(ends.size(), 1U);
}

TEST_F(RevocationsTest, AStreamThatIsOverIsNotEnded) {
  std::vector<grpc::Status> ends, moved;
  {
    const auto stay = enter(caller(pki::Role::Node, "n1", "k1"), ends);
  }
  auto from = enter(caller(pki::Role::Node, "n1", "k1"), moved);
  Revocations::Stay to;
  to = std::move(from);
  from.leave();  // it has no place any more
  revoke("n1");
  EXPECT_TRUE(ends.empty());
  EXPECT_EQ(moved.size(), 1U);
  to.leave();
  revoke("n1");
  EXPECT_EQ(moved.size(), 1U);
}

TEST_F(RevocationsTest, AnEndMayLeaveAtOnce) {
  // gRPC may call OnDone before the end returns.
  Revocations::Stay stay;
  int ends = 0;
  stay = revocations_.enter(caller(pki::Role::Node, "n1", "k1"), [&](const grpc::Status&) {
    ++ends;
    stay.leave();
  });
  revoke("n1");
  EXPECT_EQ(ends, 1);
}

TEST_F(RevocationsTest, AStreamEndsWhenItsRightIsGone) {
  std::vector<grpc::Status> kept, lost, left, owner;
  auto one = enter(caller(pki::Role::User, "ann", "k1"), kept);
  auto two = enter(caller(pki::Role::User, "bob", "k2"), lost);
  auto three = enter(caller(pki::Role::User, "eve", "k3"), left);
  auto four = enter({.is_owner = true}, owner);
  bool may = true;
  const auto while_may = [&may]() -> Result<void> {
    if (may) return {};
    return fail(ErrorCode::NotAllowed, "reading the logs of job 'j': it is of user 'ann'");
  };
  one.keep_while([]() -> Result<void> { return {}; });
  for (Revocations::Stay* stay : {&two, &three, &four}) stay->keep_while(while_may);
  three.leave();
  revocations_.ask_again();
  EXPECT_TRUE(lost.empty());
  may = false;
  revocations_.ask_again();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(lost[0].error_message(), "reading the logs of job 'j': it is of user 'ann'");
  EXPECT_TRUE(kept.empty());
  EXPECT_TRUE(left.empty());
  EXPECT_TRUE(owner.empty());
}

TEST_F(RevocationsTest, ARightThatIsGoneAlreadyEndsTheStreamAtOnce) {
  std::vector<grpc::Status> ends;
  auto stay = enter(caller(pki::Role::User, "bob", "k"), ends);
  stay.keep_while([] { return fail(ErrorCode::NotAllowed, "no"); });
  EXPECT_EQ(ends.size(), 1U);
  stay.leave();
  stay.keep_while([] { return fail(ErrorCode::NotAllowed, "no"); });
  EXPECT_EQ(ends.size(), 1U);
}

TEST_F(RevocationsTest, TheCheckOfACall) {
  const auto authority = pki::Authority::make("c0ffee", now_);
  ASSERT_TRUE(authority);
  const auto key = pki::Key::generate();
  ASSERT_TRUE(key);
  const auto check = [&](pki::Role role, WallTime issued) {
    const auto certificate =
        authority->issue(*key, identity(role, "n1"), issued, std::chrono::hours(1));
    EXPECT_TRUE(certificate);
    return revocations_.check(identity(role, "n1"), *certificate);
  };
  EXPECT_TRUE(check(pki::Role::Node, now_));
  revoke("n1");
  const auto refused = check(pki::Role::Node, now_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::NotAllowed);
  EXPECT_EQ(refused.error().message, "the certificate of node 'n1' was revoked: lost");
  EXPECT_TRUE(check(pki::Role::User, now_));
  EXPECT_TRUE(check(pki::Role::Node, now_ + std::chrono::seconds(1)));
}

}  // namespace
}  // namespace muster::controller
