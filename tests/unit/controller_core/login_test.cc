// Logins: whose personal token it is, what bounds them, what a revocation means for them, and that
// no token opens the other door.
#include <gmock/gmock.h>

#include "controller/core/access/bounds.h"
#include "controller/core/access/login.h"
#include "controller/core/access/revoked.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using std::chrono::hours;
using testing::HasSubstr;

std::string key_of(char of) { return std::string(64, of); }

class Login : public testing::Test, public SmallWorld {
 protected:
  void TearDown() override {
    Ledger again;
    for (const auto& [index, event] : journal) apply(again, index, event);
    EXPECT_EQ(dump(again), dump(ledger));
  }

  Decision token(const std::string& id, const std::string& user, std::uint32_t uses = 1,
                 const std::string& nodes = {}) {
    return put(CreateToken{.token = {.token = id,
                                     .secret_sha256 = key_of('5'),
                                     .nodes = nodes,
                                     .uses = uses,
                                     .ends_at = now.wall + hours(24),
                                     .actor = "owner",
                                     .user = user}});
  }
  NewCertificate certificate(const std::string& key, Duration lifetime = hours(24)) {
    return {.serial = fmt::format("{:04x}", ++serials_),
            .key = key,
            .not_before = now.wall - hours(24),
            .not_after = now.wall + lifetime};
  }
  Decision login(const std::string& id, const std::string& key, const std::string& user = "ann",
                 const std::string& secret = key_of('5')) {
    return put(LoginWithToken{
        .token = id, .secret_sha256 = secret, .user = user, .certificate = certificate(key)});
  }
  Decision by_uid(const std::string& user, const std::string& key) {
    return put(LoginByUid{.user = user, .uid = 1'000, .certificate = certificate(key)});
  }
  Decision revoke(const Subject& subject) {
    return put(RevokeCertificate{
        .subject = subject, .serial = {}, .why = "left the team", .actor = "owner"});
  }
  [[nodiscard]] bool counts(const std::string& key) const {
    return !Revoked(ledger.access).refuse(ann, key, now.wall - hours(24));
  }
  static std::string text(const Decision& decision) {
    return decision.refusal ? decision.refusal->message : "";
  }

  const Subject ann{.role = SubjectRole::User, .name = "ann"};

 private:
  int serials_ = 0;
};

TEST_F(Login, ATokenIsUsedOnceAndRetried) {
  ASSERT_FALSE(token("t1", "ann").refusal);
  const Decision first = login("t1", key_of('a'));
  ASSERT_FALSE(first.refusal) << text(first);
  const auto& issued = std::get<CertificateIssued>(first.events.at(0));
  EXPECT_EQ(issued.subject, ann);
  EXPECT_EQ(issued.token, "t1");
  EXPECT_EQ(issued.actor, "token t1");
  EXPECT_FALSE(login("t1", key_of('a')).refusal) << "its answer was lost";
  EXPECT_EQ(ledger.access.tokens.at("t1").joined.size(), 1U);
  EXPECT_THAT(text(login("t1", key_of('b'))), HasSubstr("used up (1 of 1)"));
  EXPECT_TRUE(counts(key_of('a')));
}

TEST_F(Login, NoTokenOpensTheOtherDoor) {
  ASSERT_FALSE(token("people", "ann").refusal);
  ASSERT_FALSE(token("nodes", "", 1, "*").refusal);
  EXPECT_THAT(text(login("nodes", key_of('a'))), HasSubstr("is for nodes that join"));
  const Decision joined = put(JoinNode{.token = "people",
                                       .secret_sha256 = key_of('5'),
                                       .node = "ann",
                                       .certificate = certificate(key_of('a'))});
  EXPECT_THAT(text(joined), HasSubstr("is a personal one"));
  EXPECT_EQ(ledger.access.certificate_count, 0U);
  EXPECT_TRUE(token("both", "ann", 1, "n1").refusal);
  EXPECT_TRUE(token("none", "").refusal);
  EXPECT_TRUE(token("unsound", "../ann").refusal);
}

TEST_F(Login, ATokenIsOfOneUserAndItsSecret) {
  ASSERT_FALSE(token("t1", "ann", 9).refusal);
  const std::string unknown = text(login("t2", key_of('a')));
  EXPECT_THAT(unknown, HasSubstr("does not know this token"));
  EXPECT_EQ(text(login("t1", key_of('a'), "ann", key_of('6'))), unknown);
  EXPECT_THAT(text(login("t1", key_of('a'), "bob")), HasSubstr("of another user"));
  ASSERT_FALSE(put(RevokeToken{.token = "t1", .actor = "owner"}).refusal);
  EXPECT_THAT(text(login("t1", key_of('a'))), HasSubstr("was revoked at"));
  ASSERT_FALSE(token("t3", "ann").refusal);
  now.wall += hours(24) + std::chrono::seconds(1);
  EXPECT_THAT(text(login("t3", key_of('a'))), HasSubstr("ended at"));
}

TEST_F(Login, TheSocketNamesTheUser) {
  const Decision in = by_uid("ann", key_of('a'));
  ASSERT_FALSE(in.refusal) << text(in);
  const auto& issued = std::get<CertificateIssued>(in.events.at(0));
  EXPECT_EQ(issued.subject, ann);
  EXPECT_EQ(issued.token, "");
  EXPECT_EQ(issued.actor, "uid 1000");
  EXPECT_TRUE(by_uid("DOM\\ann", key_of('b')).refusal);
}

TEST_F(Login, WhoeverWasRevokedIsLetInByAPersonAlone) {
  ASSERT_FALSE(by_uid("ann", key_of('a')).refusal);
  ASSERT_FALSE(token("old", "ann", 9).refusal);
  ASSERT_FALSE(revoke(ann).refusal);
  EXPECT_FALSE(counts(key_of('a')));
  now.wall += std::chrono::seconds(1);
  EXPECT_THAT(text(by_uid("ann", key_of('b'))), HasSubstr("left the team"));
  EXPECT_THAT(text(login("old", key_of('b'))), HasSubstr("token 'old' was revoked at"));
  ASSERT_FALSE(token("new", "ann", 9).refusal);
  EXPECT_THAT(text(login("new", key_of('a'))), HasSubstr("its key was revoked"));
  ASSERT_FALSE(login("new", key_of('b')).refusal);
  EXPECT_TRUE(counts(key_of('b')));
  EXPECT_FALSE(by_uid("ann", key_of('c')).refusal) << "the account counts again";
  EXPECT_FALSE(by_uid("bob", key_of('d')).refusal) << "it was nobody else's";
}

// Regression: a token that was made while the clock was ahead outlived the revocation of its user,
// and of the admin who made it.
TEST_F(Login, ARevocationEndsTokensOfAClockThatWasAhead) {
  const WallTime right = now.wall;
  now.wall += hours(2);
  ASSERT_FALSE(token("hers", "ann", 9).refusal);
  ASSERT_FALSE(put(CreateToken{.token = {.token = "by-her",
                                         .secret_sha256 = key_of('5'),
                                         .nodes = {},
                                         .uses = 9,
                                         .ends_at = now.wall + hours(24),
                                         .actor = "ann",
                                         .user = "bob"}})
                   .refusal);
  now.wall = right;
  ASSERT_FALSE(revoke(ann).refusal);
  EXPECT_THAT(text(login("hers", key_of('a'))), HasSubstr("was revoked at"));
  EXPECT_THAT(text(login("by-her", key_of('b'), "bob")), HasSubstr("was revoked at"));
}

// Regression: a revocation of a clock that was ahead refused the tokens and log-ins of after it.
TEST_F(Login, ARevocationOfAClockThatWasAheadEndsNothingOfLater) {
  const WallTime right = now.wall;
  ASSERT_FALSE(by_uid("ann", key_of('a')).refusal);
  now.wall += hours(2);
  ASSERT_FALSE(revoke(ann).refusal);
  now.wall = right;
  EXPECT_THAT(text(by_uid("ann", key_of('b'))), HasSubstr("left the team"));
  ASSERT_FALSE(token("new", "ann", 9).refusal);
  const Decision in = login("new", key_of('b'));
  EXPECT_FALSE(in.refusal) << text(in);
  EXPECT_TRUE(counts(key_of('b')));
  EXPECT_FALSE(by_uid("ann", key_of('c')).refusal) << "the account counts again";
}

TEST_F(Login, KeysOfAUserHaveABound) {
  for (std::size_t i = 0; i < kKeysOfUser; ++i)
    ASSERT_FALSE(by_uid("ann", fmt::format("{:064}", i)).refusal) << i;
  const Decision over = by_uid("ann", key_of('a'));
  ASSERT_TRUE(over.refusal);
  EXPECT_EQ(over.refusal->code, ErrorCode::ResourceExhausted);
  EXPECT_FALSE(by_uid("bob", key_of('b')).refusal);
  now.wall += hours(24) + std::chrono::seconds(1);
  EXPECT_FALSE(by_uid("ann", key_of('a')).refusal) << "those of yesterday have ended";
}

TEST_F(Login, RecordsOfAUserThatAreKeptHaveABound) {
  for (std::size_t i = 0; i < kKeysOfUserKept; ++i) {
    if (i % kKeysOfUser == 0) now.wall += hours(24) + std::chrono::seconds(1);
    ASSERT_FALSE(by_uid("ann", fmt::format("{:064}", i)).refusal) << i;
  }
  now.wall += hours(24) + std::chrono::seconds(1);
  const Decision over = by_uid("ann", key_of('a'));
  EXPECT_THAT(text(over), HasSubstr("with those that have ended"));
  EXPECT_EQ(over.refusal->code, ErrorCode::ResourceExhausted);
  EXPECT_FALSE(by_uid("bob", key_of('b')).refusal);
}

TEST_F(Login, UsersLeaveRoomForNodes) {
  const std::size_t count = std::exchange(ledger.access.certificate_count, kCertificatesForUsers);
  EXPECT_THAT(text(by_uid("ann", key_of('a'))), HasSubstr("the rest of its room is for nodes"));
  ledger.access.certificate_count = count;
  EXPECT_FALSE(by_uid("ann", key_of('a')).refusal);
}

TEST_F(Login, CertificatesOfOneKeyHaveABound) {
  for (std::uint32_t i = 0; i < kCertificatesOfKeyDay; ++i)
    ASSERT_FALSE(by_uid("ann", key_of('a')).refusal) << i;
  const Decision over = by_uid("ann", key_of('a'));
  ASSERT_TRUE(over.refusal);
  EXPECT_EQ(over.refusal->code, ErrorCode::ResourceExhausted);
  now.wall += hours(24);
  EXPECT_FALSE(by_uid("ann", key_of('a')).refusal);
}

}  // namespace
}  // namespace muster::core
