// Join tokens and certificates: who may join, who may renew, what a revocation means, and that a
// replay gives the same ledger, also behind the clearing of old records.
#include <gmock/gmock.h>

#include "controller/core/access/bounds.h"
#include "controller/core/access/fold.h"
#include "controller/core/access/join.h"
#include "controller/core/access/revoked.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using std::chrono::hours;
using testing::HasSubstr;

std::string digest(char of) { return std::string(64, of); }

class Access : public testing::Test, public SmallWorld {
 protected:
  void TearDown() override {
    Ledger again;
    for (const auto& [index, event] : journal) apply(again, index, event);
    EXPECT_EQ(dump(again), dump(ledger));
  }

  Decision token(const std::string& id, const std::string& nodes, std::uint32_t uses = 1,
                 bool may_replace = false, Duration lifetime = hours(24)) {
    return put(CreateToken{.token = {.token = id,
                                     .secret_sha256 = digest('5'),
                                     .nodes = nodes,
                                     .uses = uses,
                                     .ends_at = now.wall + lifetime,
                                     .may_replace = may_replace,
                                     .actor = "owner"}});
  }
  NewCertificate certificate(const std::string& key, Duration lifetime = hours(24 * 30)) {
    return {.serial = fmt::format("{:04x}", ++serials_),
            .key = key,
            .not_before = now.wall - hours(24),
            .not_after = now.wall + lifetime};
  }
  Decision join(const std::string& id, const std::string& node, const std::string& key,
                const std::string& secret = digest('5')) {
    return put(JoinNode{
        .token = id, .secret_sha256 = secret, .node = node, .certificate = certificate(key)});
  }
  Decision renew(const std::string& node, const std::string& registered, const std::string& key) {
    return put(RenewNode{.node = node, .registered = registered, .certificate = certificate(key)});
  }
  Decision issue(const Subject& subject, const std::string& key,
                 Duration lifetime = hours(24 * 30)) {
    return put(IssueCertificate{
        .subject = subject, .certificate = certificate(key, lifetime), .actor = "owner"});
  }
  Decision revoke(const Subject& subject, const std::string& why = "lost") {
    return put(RevokeCertificate{.subject = subject, .serial = {}, .why = why, .actor = "owner"});
  }
  [[nodiscard]] bool counts(const Subject& subject, const std::string& key, WallTime issued) const {
    return !Revoked(ledger.access).refuse(subject, key, issued);
  }
  [[nodiscard]] const CertificateRecord& record(const Subject& subject, const std::string& key) {
    return ledger.access.certificates.at(subject).at(key);
  }
  static std::string text(const Decision& decision) {
    return decision.refusal ? decision.refusal->message : "";
  }

  const Subject n1{.role = SubjectRole::Node, .name = "n1"};
  const Subject ann{.role = SubjectRole::User, .name = "ann"};

 private:
  int serials_ = 0;
};

TEST_F(Access, ANewNodeJoinsWithATokenOnce) {
  ASSERT_FALSE(token("t1", "n1").refusal);
  const Decision joined = join("t1", "n1", digest('a'));
  ASSERT_FALSE(joined.refusal) << text(joined);
  ASSERT_EQ(joined.events.size(), 1U);
  const auto& issued = std::get<CertificateIssued>(joined.events[0]);
  EXPECT_EQ(issued.subject, n1);
  EXPECT_EQ(issued.token, "t1");
  EXPECT_EQ(issued.actor, "token t1");
  EXPECT_EQ(ledger.access.tokens.at("t1").joined.size(), 1U);
  EXPECT_THAT(text(join("t1", "n1", digest('b'))), HasSubstr("used up (1 of 1)"));
}

TEST_F(Access, TheRetryOfAJoinCountsAsNoUse) {
  ASSERT_FALSE(token("t1", "n*", 2).refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  const std::string first = record(n1, digest('a')).serial;
  const Decision again = join("t1", "n1", digest('a'));
  ASSERT_FALSE(again.refusal) << text(again);
  EXPECT_NE(record(n1, digest('a')).serial, first) << "it is a new certificate of the same key";
  EXPECT_EQ(ledger.access.tokens.at("t1").joined.size(), 1U);
  EXPECT_FALSE(join("t1", "n2", digest('b')).refusal);
  EXPECT_TRUE(join("t1", "n3", digest('c')).refusal);
  EXPECT_FALSE(join("t1", "n2", digest('b')).refusal) << "a token that is used up allows retries";
}

TEST_F(Access, ATokenIsForItsNamesItsTimeAndItsSecret) {
  ASSERT_FALSE(token("t1", "gpu-*", 9).refusal);
  const std::string unknown = text(join("t2", "gpu-1", digest('a')));
  EXPECT_THAT(unknown, HasSubstr("does not know this token"));
  EXPECT_EQ(text(join("t1", "gpu-1", digest('a'), digest('6'))), unknown)
      << "whoever guesses learns nothing about ids";
  EXPECT_THAT(text(join("t1", "cpu-1", digest('a'))), HasSubstr("is for 'gpu-*'"));
  EXPECT_EQ(join("t1", "gpu-1\n", digest('a')).refusal->code, ErrorCode::InvalidArgument);
  EXPECT_FALSE(join("t1", "gpu-", digest('a')).refusal);
  EXPECT_FALSE(join("t1", "gpu-1", digest('a')).refusal);
  ASSERT_FALSE(put(RevokeToken{.token = "t1", .actor = "owner"}).refusal);
  EXPECT_THAT(text(join("t1", "gpu-2", digest('b'))), HasSubstr("token 't1' was revoked at"));
  EXPECT_TRUE(put(RevokeToken{.token = "t1", .actor = "owner"}).events.empty());
  EXPECT_EQ(put(RevokeToken{.token = "t9", .actor = "owner"}).refusal->code, ErrorCode::NotFound);
  ASSERT_FALSE(token("t3", "gpu-2").refusal);
  pass(hours(24));
  EXPECT_FALSE(join("t3", "gpu-2", digest('c')).refusal) << "its last moment counts";
  pass(std::chrono::seconds(1));
  EXPECT_THAT(text(join("t3", "gpu-2", digest('c'))), HasSubstr("ended at"));
}

TEST_F(Access, PatternsHaveOneStar) {
  for (const char* sound : {"n1", "*", "gpu-*", "*-a", "a*b"})
    EXPECT_FALSE(token(sound, sound).refusal) << sound;
  for (const char* unsound : {"", "**", "a*b*", "-*", "a b", "../*", "a/b"})
    EXPECT_TRUE(token(fmt::format("t{}", unsound), unsound).refusal) << unsound;
  EXPECT_TRUE(matches("a*b", "ab"));
  EXPECT_TRUE(matches("a*b", "axxb"));
  EXPECT_FALSE(matches("aa*a", "aa")) << "front and back do not overlap";
  EXPECT_FALSE(matches("a", "ab"));
}

TEST_F(Access, TokensHaveBounds) {
  EXPECT_TRUE(token("t", "n1", 0).refusal);
  EXPECT_TRUE(token("t", "n*", kTokenUsesMost + 1).refusal);
  EXPECT_TRUE(token("t", "n1", 1, false, hours(1) - Duration(1)).refusal);
  EXPECT_TRUE(token("t", "n1", 1, false, kTokenLifetimeMost + Duration(1)).refusal);
  EXPECT_TRUE(token("t", "n*", 1, true).refusal) << "one that replaces is for one name";
  EXPECT_TRUE(token("t", "n1", 2, true).refusal);
  for (std::size_t i = 0; i < kTokensLive; ++i)
    ASSERT_FALSE(token(fmt::format("t{}", i), "n1").refusal) << i;
  const Decision over = token("one-more", "n1");
  ASSERT_TRUE(over.refusal);
  EXPECT_EQ(over.refusal->code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(token("t0", "n1").refusal->code, ErrorCode::Conflict);
  ASSERT_FALSE(put(RevokeToken{.token = "t0", .actor = "owner"}).refusal);
  EXPECT_FALSE(token("one-more", "n1").refusal) << "revoked ones do not count";
}

TEST_F(Access, ManyTokensThatAreOverLeaveTheOldestFirst) {
  for (std::size_t i = 0; i <= kTokensKept; ++i) {
    ASSERT_FALSE(token(fmt::format("t{:05}", i), "n1").refusal);
    ASSERT_FALSE(put(RevokeToken{.token = fmt::format("t{:05}", i), .actor = "owner"}).refusal);
    pass(Duration(1));
  }
  EXPECT_EQ(ledger.access.tokens.size(), kTokensKept);
  EXPECT_FALSE(ledger.access.tokens.contains("t00000"));
  EXPECT_TRUE(ledger.access.tokens.contains("t00001"));
}

TEST_F(Access, AKnownNameWithAnotherKeyNeedsATokenThatReplaces) {
  ASSERT_FALSE(token("t1", "n*", 9).refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  EXPECT_THAT(text(join("t1", "n1", digest('b'))), HasSubstr("`muster node replace n1`"));
  node("n2", 1);  // it registered over the unix socket, without a certificate
  EXPECT_THAT(text(join("t1", "n2", digest('c'))), HasSubstr("known with another key"));
  EXPECT_THAT(text(token("t3", "n9", 1, true)), HasSubstr("there is no node 'n9'"));
  ASSERT_FALSE(token("t4", "n2", 1, true).refusal);
  EXPECT_THAT(text(join("t4", "n2", digest('c'))), HasSubstr("an agent of this name is connected"));
  ASSERT_FALSE(token("t2", "n1", 1, true).refusal);
  const WallTime before = now.wall;
  pass(std::chrono::seconds(2));
  const Decision joined = join("t2", "n1", digest('b'));
  ASSERT_FALSE(joined.refusal) << text(joined);
  ASSERT_EQ(joined.events.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<CertificateRevoked>(joined.events[0]));
  EXPECT_FALSE(counts(n1, digest('a'), before));
  EXPECT_TRUE(counts(n1, digest('b'), now.wall));
  const Decision again = join("t2", "n1", digest('b'));
  EXPECT_EQ(again.events.size(), 1U) << "a retry revokes nothing";
  EXPECT_TRUE(counts(n1, digest('b'), now.wall));
  EXPECT_THAT(text(join("t1", "n1", digest('a'))),
              HasSubstr("another machine has taken its place"));
}

TEST_F(Access, ANodeRenewsWithARegisteredKey) {
  ASSERT_FALSE(token("t1", "n1").refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  EXPECT_THAT(text(renew("n1", digest('b'), digest('b'))), HasSubstr("knows no such key"));
  EXPECT_TRUE(renew("n2", digest('a'), digest('a')).refusal) << "the key is of another node";
  ASSERT_FALSE(renew("n1", digest('a'), digest('b')).refusal);
  ASSERT_FALSE(renew("n1", digest('b'), digest('b')).refusal);
  pass(hours(24 * 59));  // the certificate ended 29 days ago
  ASSERT_FALSE(renew("n1", digest('b'), digest('c')).refusal);
  pass(hours(24 * 61));
  EXPECT_TRUE(renew("n1", digest('c'), digest('c')).refusal) << "too long ago";
}

TEST_F(Access, ARevokedNodeNeitherRenewsNorJoinsWithItsKey) {
  ASSERT_FALSE(token("t1", "n*", 9).refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  ASSERT_FALSE(join("t1", "n2", digest('b')).refusal);
  const WallTime issued = now.wall;
  ASSERT_FALSE(revoke(n1, "the machine is lost").refusal);
  const auto refused = Revoked(ledger.access).refuse(n1, digest('a'), issued);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message, "the certificate of node 'n1' was revoked: the machine is lost");
  EXPECT_TRUE(counts({.role = SubjectRole::Node, .name = "n2"}, digest('b'), issued));
  EXPECT_THAT(text(renew("n1", digest('a'), digest('a'))), HasSubstr("was revoked at"));
  EXPECT_THAT(text(renew("n1", digest('a'), digest('c'))), HasSubstr("the machine is lost"));
  EXPECT_THAT(text(join("t1", "n1", digest('a'))), HasSubstr("make a new key"));
  EXPECT_TRUE(issue(n1, digest('a')).refusal);
  // In the same moment: what was issued afterwards counts.
  ASSERT_FALSE(issue(n1, digest('d')).refusal);
  EXPECT_TRUE(counts(n1, digest('d'), now.wall));
}

TEST_F(Access, ANameIsRevokedThoughTheLedgerDoesNotKnowItsCertificates) {
  const WallTime earlier = now.wall - hours(24 * 100);  // by an earlier release
  EXPECT_TRUE(counts(ann, digest('a'), earlier));
  ASSERT_FALSE(revoke(ann).refusal);
  EXPECT_FALSE(counts(ann, digest('a'), earlier));
  EXPECT_FALSE(counts(ann, digest('a'), now.wall));
  EXPECT_TRUE(counts(ann, digest('a'), now.wall + std::chrono::seconds(1)));
  EXPECT_TRUE(counts({.role = SubjectRole::Node, .name = "ann"}, digest('a'), earlier));
}

// Regression: whoever had one took the place of the node after its revocation, too.
TEST_F(Access, UnusedTokensThatReplaceANodeEndWithItsRevocation) {
  ASSERT_FALSE(token("t1", "n*", 9).refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  ASSERT_FALSE(join("t1", "n2", digest('b')).refusal);
  for (const std::string id : {"lost", "second"}) ASSERT_FALSE(token(id, "n1", 1, true).refusal);
  ASSERT_FALSE(token("of-n2", "n2", 1, true).refusal);
  ASSERT_FALSE(join("second", "n1", digest('c')).refusal);
  EXPECT_FALSE(join("second", "n1", digest('c')).refusal) << "its answer was lost";
  EXPECT_FALSE(ledger.access.tokens.at("lost").revoked_at) << "no person has revoked anything";

  now.wall -= hours(2);  // the clock was ahead
  const Decision revoked = revoke(n1);
  ASSERT_EQ(revoked.events.size(), 2U);
  EXPECT_EQ(std::get<TokenRevoked>(revoked.events[1]).token, "lost");
  EXPECT_EQ(std::get<TokenRevoked>(revoked.events[1]).actor, "owner");
  EXPECT_THAT(text(join("lost", "n1", digest('d'))), HasSubstr("token 'lost' was revoked at"));
  EXPECT_THAT(text(join("second", "n1", digest('c'))), HasSubstr("its key was revoked at"));
  EXPECT_EQ(revoke(n1).events.size(), 1U);
  EXPECT_EQ(text(join("t1", "n3", digest('e'))), "") << "it lets nobody in as n1";
  EXPECT_EQ(text(join("of-n2", "n2", digest('f'))), "");
  ASSERT_FALSE(token("after", "n1", 1, true).refusal);
  EXPECT_EQ(text(join("after", "n1", digest('d'))), "");
}

// Regression: an admin who was revoked came back by a token that he had made for another admin.
TEST_F(Access, WhoIsRevokedByNameLosesTheTokensThatHeMade) {
  const auto made_by = [&](const std::string& id, const std::string& actor) {
    ASSERT_FALSE(put(CreateToken{.token = {.token = id,
                                           .secret_sha256 = digest('5'),
                                           .nodes = "n*",
                                           .uses = 9,
                                           .ends_at = now.wall + hours(24),
                                           .may_replace = false,
                                           .actor = actor}})
                     .refusal);
  };
  made_by("his", "mallory");
  made_by("hers", "ada");
  ASSERT_FALSE(join("his", "n1", digest('1')).refusal);
  ASSERT_FALSE(revoke({.role = SubjectRole::Node, .name = "mallory"}).refusal);
  EXPECT_FALSE(join("his", "n2", digest('2')).refusal) << "a node of that name made none";
  ASSERT_FALSE(revoke({.role = SubjectRole::User, .name = "mallory"}).refusal);
  EXPECT_THAT(join("his", "n3", digest('3')).refusal->message, HasSubstr("was revoked at"));
  EXPECT_FALSE(join("hers", "n4", digest('4')).refusal);
  now.wall += hours(1);
  made_by("later", "mallory");  // somebody has let him in again
  EXPECT_FALSE(join("later", "n5", digest('5')).refusal);
}

TEST_F(Access, ASerialRevokesItsKeyAlone) {
  ASSERT_FALSE(issue(ann, digest('a')).refusal);
  ASSERT_FALSE(issue(ann, digest('b')).refusal);
  const RevokeCertificate one{
      .subject = {}, .serial = record(ann, digest('a')).serial, .why = "leaked", .actor = "owner"};
  ASSERT_EQ(put(one).events.size(), 1U);
  EXPECT_TRUE(put(one).events.empty()) << "once is enough";
  EXPECT_FALSE(counts(ann, digest('a'), now.wall));
  EXPECT_TRUE(counts(ann, digest('b'), now.wall));
  RevokeCertificate unknown = one;
  unknown.serial = "ffff";
  EXPECT_EQ(put(unknown).refusal->code, ErrorCode::NotFound);
}

TEST_F(Access, OneNodeCannotFillTheJournal) {
  ASSERT_FALSE(token("t1", "n1").refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  for (std::uint32_t i = 1; i < kCertificatesOfKeyDay; ++i)
    ASSERT_FALSE(renew("n1", digest('a'), digest('a')).refusal) << i;
  EXPECT_EQ(renew("n1", digest('a'), digest('a')).refusal->code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(join("t1", "n1", digest('a')).refusal->code, ErrorCode::ResourceExhausted);
  pass(hours(24));
  EXPECT_FALSE(renew("n1", digest('a'), digest('a')).refusal);
  for (std::size_t i = 1; i < kKeysOfNode; ++i)
    ASSERT_FALSE(renew("n1", digest('a'), fmt::format("{:064}", i)).refusal) << i;
  EXPECT_EQ(renew("n1", digest('a'), digest('f')).refusal->code, ErrorCode::ResourceExhausted);
}

TEST_F(Access, TheLedgerHasABoundOfCertificates) {
  ledger.access.certificate_count = kCertificatesMost;
  EXPECT_EQ(issue(ann, digest('a')).refusal->code, ErrorCode::ResourceExhausted);
  ledger.access.certificate_count = 0;
}

TEST_F(Access, OldRecordsLeaveAtAnEventAndTheNameStaysRevoked) {
  ASSERT_FALSE(token("t1", "n1").refusal);
  ASSERT_FALSE(join("t1", "n1", digest('a')).refusal);
  ASSERT_FALSE(issue(ann, digest('b'), hours(24 * 365)).refusal);
  ASSERT_FALSE(revoke(n1).refusal);
  const WallTime issued = now.wall;
  pass(hours(24 * 30));
  ASSERT_FALSE(token("t1b", "n2").refusal);
  EXPECT_TRUE(ledger.access.tokens.contains("t1"));
  EXPECT_TRUE(ledger.access.certificates.contains(n1));
  pass(hours(24 * 31));
  ASSERT_FALSE(token("t2", "n2").refusal);
  EXPECT_FALSE(ledger.access.tokens.contains("t1"));
  EXPECT_FALSE(ledger.access.certificates.contains(n1));
  EXPECT_TRUE(ledger.access.certificates.contains(ann));
  EXPECT_EQ(ledger.access.certificate_count, 1U);
  EXPECT_FALSE(counts(n1, digest('a'), issued));
  EXPECT_TRUE(join("t2", "n2", digest('c')).events.size() == 1);
  ASSERT_FALSE(token("t3", "n1").refusal);
  EXPECT_THAT(text(join("t3", "n1", digest('d'))), HasSubstr("node replace"))
      << "a name that was revoked stays known";
}

// Regression: one event of a clock that was months ahead removed the revocation with the record,
// and the stolen key counted again when the clock was right.
TEST_F(Access, AClockThatIsAheadMakesNoRevokedKeyCount) {
  ASSERT_FALSE(token("t1", "n1").refusal);
  ASSERT_FALSE(issue(ann, digest('a')).refusal);
  ASSERT_FALSE(issue(ann, digest('b')).refusal);
  const WallTime issued = now.wall;
  ASSERT_FALSE(put(RevokeCertificate{.subject = {},
                                     .serial = record(ann, digest('a')).serial,
                                     .why = "stolen",
                                     .actor = "owner"})
                   .refusal);
  const WallTime right = now.wall;
  pass(hours(24 * 200));
  ASSERT_FALSE(token("t2", "n2").refusal);
  EXPECT_TRUE(ledger.access.tokens.contains("t1")) << "one leap removes nothing";
  EXPECT_TRUE(ledger.access.certificates.at(ann).contains(digest('b')));
  pass(hours(1));
  ASSERT_FALSE(token("t3", "n2").refusal);
  EXPECT_FALSE(ledger.access.tokens.contains("t1"));
  EXPECT_FALSE(ledger.access.certificates.at(ann).contains(digest('b')));
  EXPECT_EQ(ledger.access.certificate_count, 1U);
  now.wall = right;
  ASSERT_FALSE(token("t4", "n2").refusal);
  EXPECT_FALSE(counts(ann, digest('a'), issued));
}

TEST(SameDigest, ComparesAllOfThem) {
  EXPECT_TRUE(same_digest("", ""));
  EXPECT_TRUE(same_digest(digest('a'), digest('a')));
  EXPECT_FALSE(same_digest(digest('a'), digest('a').substr(1)));
  EXPECT_FALSE(same_digest(digest('a'), digest('a').substr(1) + "b"));
  EXPECT_FALSE(same_digest(digest('a'), "b" + digest('a').substr(1)));
}

}  // namespace
}  // namespace muster::core
