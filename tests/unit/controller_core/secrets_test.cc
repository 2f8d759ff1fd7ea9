// Users' secrets: who has which, which of them a job gets, and their bounds.
#include "controller/core/secrets/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/core/core.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

OwnedName of(const std::string& owner, const std::string& name) {
  return {.owner = owner, .shared = false, .name = name};
}
OwnedName shared(const std::string& name) { return {.owner = {}, .shared = true, .name = name}; }

class SecretsTest : public testing::Test {
 protected:
  Decision put(const OwnedName& key, const std::string& item) {
    return taken(decide_set(ledger_, {.key = key, .item = item, .actor = key.owner}));
  }
  Decision remove(const OwnedName& key) {
    return taken(decide_remove(ledger_, {.key = key, .actor = key.owner}));
  }
  Decision taken(Decision decision) {
    for (const EventBody& event : decision.events)
      apply(ledger_, JournalIndex(++index_), {.at = {}, .body = event});
    return decision;
  }
  static v1::JobSpec spec(const std::string& value) {
    v1::JobSpec made;
    (*made.mutable_runtime()->mutable_env())["HF_TOKEN"] = value;
    return made;
  }

  Ledger ledger_;
  std::uint64_t index_ = 0;
};

TEST_F(SecretsTest, AnotherValueNamesTheItemOfTheOneBefore) {
  const auto first = put(of("ann", "hf"), "i1");
  EXPECT_EQ(std::get<SecretSet>(first.events.at(0)).replaced, "");
  const auto second = put(of("ann", "hf"), "i2");
  EXPECT_EQ(std::get<SecretSet>(second.events.at(0)).replaced, "i1");
  EXPECT_EQ(ledger_.secrets.at(of("ann", "hf")).item, "i2");
  EXPECT_EQ(put(of("bob", "hf"), "i3").refusal, std::nullopt) << "each user has names of his own";
  const auto gone = remove(of("ann", "hf"));
  EXPECT_EQ(std::get<SecretRemoved>(gone.events.at(0)).item, "i2");
  EXPECT_FALSE(ledger_.secrets.contains(of("ann", "hf")));
  EXPECT_TRUE(ledger_.secrets.contains(of("bob", "hf")));
  const auto none = remove(of("ann", "hf"));
  ASSERT_TRUE(none.refusal);
  EXPECT_EQ(none.refusal->code, ErrorCode::NotFound);
  EXPECT_THAT(none.refusal->message,
              HasSubstr("secret 'hf' of user 'ann': there is no such secret"));
}

TEST_F(SecretsTest, NamesAndNumbersAreBounded) {
  for (const char* name : {"", "a b", "../x", "-x", "a\nb"})
    EXPECT_EQ(put(of("ann", name), "i").refusal.value().code, ErrorCode::InvalidArgument) << name;
  for (std::size_t i = 0; i < kSecretsOfUser; ++i)
    ASSERT_FALSE(put(of("ann", "s" + std::to_string(i)), "i").refusal);
  const auto more = put(of("ann", "more"), "i");
  ASSERT_TRUE(more.refusal);
  EXPECT_EQ(more.refusal->code, ErrorCode::ResourceExhausted);
  EXPECT_FALSE(put(of("ann", "s0"), "j").refusal) << "another value is no further secret";
  EXPECT_FALSE(put(of("bob", "more"), "i").refusal);
  EXPECT_FALSE(put(shared("more"), "i").refusal);
}

TEST_F(SecretsTest, AJobGetsItsOwnersBeforeTheSharedOne) {
  EXPECT_EQ(find_secret(ledger_, "ann", "hf"), nullptr);
  put(of("bob", "hf"), "bobs");
  EXPECT_EQ(find_secret(ledger_, "ann", "hf"), nullptr) << "nobody gets another user's";
  put(shared("hf"), "everybodys");
  EXPECT_EQ(find_secret(ledger_, "ann", "hf")->item, "everybodys");
  EXPECT_EQ(find_secret(ledger_, "bob", "hf")->item, "bobs");
}

TEST_F(SecretsTest, AMissingOneIsNamedAtTheSubmission) {
  put(of("ann", "hf-token"), "i");
  EXPECT_EQ(refuse_secrets(ledger_, spec("${secret:hf-token}"), "ann"), std::nullopt);
  EXPECT_EQ(refuse_secrets(ledger_, spec("plain"), "bob"), std::nullopt);
  EXPECT_EQ(refuse_secrets(ledger_, spec("$${secret:x}"), "bob"), std::nullopt) << "a text";
  EXPECT_EQ(refuse_secrets(ledger_, spec("${secret:hf-tokn}"), "ann").value().message,
            "runtime.env.HF_TOKEN: there is no secret 'hf-tokn' of user 'ann', and none of that "
            "name is shared; nearest: 'hf-token'; `muster secret set hf-tokn` makes it");
  EXPECT_EQ(refuse_secrets(ledger_, spec("${secret:hf-token}"), "bob").value().message,
            "runtime.env.HF_TOKEN: there is no secret 'hf-token' of user 'bob', and none of that "
            "name is shared; `muster secret set hf-token` makes it");
}

}  // namespace
}  // namespace muster::core
