// The steps of a change of the CA: which is accepted when, and what a replay makes of them.
#include "controller/core/access/authorities.h"

#include <gmock/gmock.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

class CaChange : public testing::Test, public SmallWorld {
 protected:
  void TearDown() override {
    Ledger again;
    for (const auto& [index, event] : journal) apply(again, index, event);
    EXPECT_EQ(dump(again), dump(ledger));
  }
  Decision step(AuthorityStep step, const std::string& sha256, const std::string& signing,
                bool imported = false, bool at_once = false) {
    return put(ChangeAuthority{.step = step,
                               .sha256 = sha256,
                               .signing = signing,
                               .imported = imported,
                               .at_once = at_once,
                               .actor = "owner"});
  }
  static std::string text(const Decision& decision) {
    return decision.refusal ? decision.refusal->message : "";
  }
  [[nodiscard]] const AuthorityRecords& known() const { return ledger.access.authorities; }
};

TEST_F(CaChange, GoesItsSteps) {
  EXPECT_THAT(text(step(AuthorityStep::Signs, "", "a")), HasSubstr("no next one is published"));
  EXPECT_THAT(text(step(AuthorityStep::Dropped, "", "a")),
              HasSubstr("there is only the one that signs"));

  // The first change records the CA that has signed so far.
  EXPECT_EQ(step(AuthorityStep::Published, "b", "a").events.size(), 2U);
  EXPECT_EQ(known().signing, "a");
  EXPECT_EQ(known().next, "b");
  EXPECT_THAT(text(step(AuthorityStep::Published, "c", "a")),
              HasSubstr("CA b is still waiting to sign"));
  EXPECT_THAT(text(step(AuthorityStep::Signs, "c", "a")), HasSubstr("no next one is published"));

  ASSERT_FALSE(step(AuthorityStep::Signs, "b", "a").refusal);
  EXPECT_EQ(known().signing, "b");
  EXPECT_EQ(known().old, "a");
  EXPECT_EQ(known().next, "");
  EXPECT_EQ(known().signs_since, now.wall);
  EXPECT_THAT(text(step(AuthorityStep::Published, "c", "b")), HasSubstr("CA a is still trusted"));

  ASSERT_FALSE(step(AuthorityStep::Dropped, "a", "b").refusal);
  EXPECT_EQ(known().old, "");
  EXPECT_TRUE(known().dropped.contains("a"));
  EXPECT_THAT(text(step(AuthorityStep::Published, "a", "b")), HasSubstr("was dropped before"));
  EXPECT_THAT(text(step(AuthorityStep::Published, "b", "b")), HasSubstr("signs already"));
  EXPECT_EQ(step(AuthorityStep::Published, "c", "b").events.size(), 1U);
}

// Regression: whoever replaced the digest in a token of the old CA could join with it for 30 days.
TEST_F(CaChange, TokensEndWithTheirCa) {
  const auto token = [&](const std::string& id) {
    EXPECT_FALSE(put(CreateToken{.token = {.token = id,
                                           .secret_sha256 = std::string(64, '5'),
                                           .nodes = "n*",
                                           .uses = 9,
                                           .ends_at = now.wall + std::chrono::hours(24),
                                           .may_replace = false,
                                           .actor = "owner"},
                                 .authority = known().signing})
                     .refusal);
  };
  const auto join = [&](const std::string& id, const std::string& node) {
    return text(put(JoinNode{.token = id,
                             .secret_sha256 = std::string(64, '5'),
                             .node = node,
                             .certificate = {.serial = node,
                                             .key = node + std::string(62, 'k'),
                                             .not_before = now.wall,
                                             .not_after = now.wall + std::chrono::hours(24),
                                             .authority = known().signing}}));
  };
  token("t1");
  ASSERT_FALSE(step(AuthorityStep::Published, "b", "a").refusal);
  token("t2");
  ASSERT_FALSE(step(AuthorityStep::Dropped, "b", "a").refusal) << "aborted";
  ASSERT_FALSE(step(AuthorityStep::Published, "c", "a").refusal);
  ASSERT_FALSE(step(AuthorityStep::Signs, "c", "a").refusal);
  token("t3");
  for (const std::string id : {"t1", "t2", "t3"}) EXPECT_EQ(join(id, "n" + id), "") << id;
  ASSERT_FALSE(step(AuthorityStep::Dropped, "a", "c").refusal);
  for (const std::string id : {"t1", "t2"})
    EXPECT_THAT(join(id, "n2" + id), HasSubstr("when the CA that it is of was dropped")) << id;
  EXPECT_EQ(join("t3", "nt4"), "");
  // The CA was lost, and another one is in its place.
  ASSERT_FALSE(step(AuthorityStep::Signs, "d", "d").refusal);
  EXPECT_THAT(join("t3", "nt5"), HasSubstr("was revoked at"));
  token("t6");
  EXPECT_EQ(join("t6", "nt6"), "");
}

// Regression: a journal of a release that recorded no CA took one that had replaced a lost CA for
// the first one, and tokens of before counted with its digest in them.
TEST_F(CaChange, TokensThatAreOlderThanTheFirstCaEnd) {
  const auto token = [&](const std::string& id) {
    EXPECT_FALSE(put(CreateToken{.token = {.token = id,
                                           .secret_sha256 = std::string(64, '5'),
                                           .nodes = "n*",
                                           .uses = 9,
                                           .ends_at = now.wall + std::chrono::hours(24),
                                           .may_replace = false,
                                           .actor = "owner"}})
                     .refusal);
  };
  token("t1");
  pass(std::chrono::hours(1));
  const WallTime made_at = now.wall;
  pass(std::chrono::hours(1));
  token("t2");
  const ChangeAuthority first{.step = AuthorityStep::Signs,
                              .sha256 = "b",
                              .signing = "b",
                              .made_at = made_at,
                              .actor = "owner"};
  EXPECT_EQ(put(first).events.size(), 2U);
  EXPECT_EQ(ledger.access.tokens.at("t1").revoked_at, now.wall);
  EXPECT_FALSE(ledger.access.tokens.at("t2").revoked_at);
  EXPECT_TRUE(put(first).events.empty());
}

// Regression: where the files of the next CA could not be written, the old one went on signing, and
// the last step waited for nothing of that.
TEST_F(CaChange, OnlyTheCaThatSignsIssues) {
  const auto certificate = [&](const std::string& key, const std::string& authority) {
    return NewCertificate{.serial = key,
                          .key = key,
                          .not_before = now.wall,
                          .not_after = now.wall + std::chrono::hours(24),
                          .authority = authority};
  };
  const auto token = [&](const std::string& id, const std::string& node, const std::string& user,
                         const std::string& authority) {
    return CreateToken{.token = {.token = id,
                                 .secret_sha256 = std::string(64, '5'),
                                 .nodes = node,
                                 .uses = 9,
                                 .ends_at = now.wall + std::chrono::hours(24),
                                 .actor = "owner",
                                 .user = user},
                       .authority = authority};
  };
  const auto asked_of = [&](const std::string& authority, const std::string& name) {
    const std::string secret(64, '5');
    return std::vector<Input>{
        token("join-" + name, "n*", "", authority),
        token("login-" + name, "", "ann", authority),
        IssueCertificate{.subject = {.role = SubjectRole::User, .name = "bob"},
                         .certificate = certificate("issued-" + name, authority),
                         .actor = "owner"},
        JoinNode{.token = "join",
                 .secret_sha256 = secret,
                 .node = "n" + name,
                 .certificate = certificate("joined-" + name, authority)},
        JoinNode{.token = "join",  // again, as after a lost answer
                 .secret_sha256 = secret,
                 .node = "n1",
                 .certificate = certificate("k1", authority)},
        RenewNode{.node = "n1",
                  .registered = "k1",
                  .certificate = certificate("renewed-" + name, authority)},
        LoginWithToken{.token = "login",
                       .secret_sha256 = secret,
                       .user = "ann",
                       .certificate = certificate("logged-in-" + name, authority)},
        LoginByUid{
            .user = "vera", .uid = 1'000, .certificate = certificate("by-uid-" + name, authority)}};
  };
  ASSERT_FALSE(put(token("join", "n*", "", "")).refusal) << "no CA is known: none is refused";
  ASSERT_FALSE(put(token("login", "", "ann", "")).refusal);
  ASSERT_FALSE(put(JoinNode{.token = "join",
                            .secret_sha256 = std::string(64, '5'),
                            .node = "n1",
                            .certificate = certificate("k1", "a")})
                   .refusal);
  ASSERT_FALSE(step(AuthorityStep::Published, "b", "a").refusal);
  for (const Input& input : asked_of("a", "published")) EXPECT_EQ(text(put(input)), "");
  for (const Input& input : asked_of("b", "too-early"))
    EXPECT_THAT(text(put(input)), HasSubstr("CA a signs"));

  ASSERT_FALSE(step(AuthorityStep::Signs, "b", "a").refusal);
  const std::size_t rows = journal.size();
  for (const Input& input : asked_of("a", "signs")) {
    const Decision decision = put(input);
    ASSERT_TRUE(decision.refusal) << "input " << input.index();
    EXPECT_EQ(decision.refusal->code, ErrorCode::Io) << "it may be asked for again";
    EXPECT_THAT(decision.refusal->message,
                HasSubstr(": CA b signs since `muster cert rotate sign`"));
  }
  EXPECT_EQ(journal.size(), rows);
  for (const Input& input : asked_of("b", "in-place")) EXPECT_EQ(text(put(input)), "");
}

TEST_F(CaChange, ANextOneCanBeAborted) {
  ASSERT_FALSE(step(AuthorityStep::Published, "b", "a", true).refusal);
  EXPECT_TRUE(known().imported.contains("b"));
  ASSERT_FALSE(step(AuthorityStep::Dropped, "b", "a").refusal);
  EXPECT_EQ(known().next, "");
  EXPECT_EQ(known().signing, "a");
  EXPECT_FALSE(known().imported.contains("b"));
}

TEST_F(CaChange, AtOnceOnlyWhereNothingWasIssued) {
  ASSERT_FALSE(step(AuthorityStep::Published, "b", "a", true, true).refusal);
  EXPECT_EQ(known().signing, "b");
  EXPECT_EQ(known().next, "");
  EXPECT_EQ(known().old, "");
  EXPECT_TRUE(known().dropped.contains("a"));
  ASSERT_FALSE(put(IssueCertificate{.subject = {.role = SubjectRole::User, .name = "ann"},
                                    .certificate = {.serial = "01",
                                                    .key = std::string(64, 'k'),
                                                    .not_before = now.wall,
                                                    .not_after = now.wall + std::chrono::hours(9),
                                                    .authority = "b"},
                                    .actor = "owner"})
                   .refusal);
  EXPECT_THAT(text(step(AuthorityStep::Published, "c", "b", true, true)),
              HasSubstr("a certificate was issued meanwhile"));
}

TEST_F(CaChange, OneThatWasPutInItsPlaceDropsAllOthers) {
  EXPECT_EQ(step(AuthorityStep::Signs, "a", "a").events.size(), 1U);  // the first one
  EXPECT_TRUE(step(AuthorityStep::Signs, "a", "a").events.empty());
  EXPECT_EQ(step(AuthorityStep::Published, "b", "a").events.size(), 1U);
  EXPECT_EQ(step(AuthorityStep::Signs, "x", "x").events.size(), 3U);
  EXPECT_EQ(known().signing, "x");
  EXPECT_EQ(known().next, "");
  EXPECT_EQ(known().old, "");
  EXPECT_EQ(known().dropped, (std::set<std::string>{"a", "b"}));
  EXPECT_TRUE(step(AuthorityStep::Signs, "x", "x").events.empty());
}

// The journal has lost the end of a finished change. The files have the next one alone, and it is
// not dropped on the way.
TEST_F(CaChange, TheNextOneMaySignAlready) {
  ASSERT_FALSE(step(AuthorityStep::Published, "b", "a", true).refusal);
  EXPECT_EQ(step(AuthorityStep::Signs, "b", "b").events.size(), 2U);
  EXPECT_EQ(known().signing, "b");
  EXPECT_EQ(known().next, "");
  EXPECT_EQ(known().old, "");
  EXPECT_EQ(known().imported, (std::set<std::string>{"b"}));
  EXPECT_EQ(known().dropped, (std::set<std::string>{"a"}));
}

}  // namespace
}  // namespace muster::core
