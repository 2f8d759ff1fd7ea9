// Users' stores: who has which, which of them is for a URL, and their bounds.
#include "controller/core/stores/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

class StoresTest : public testing::Test {
 protected:
  static OwnedName of(const std::string& owner, const std::string& name) {
    return {.owner = owner, .shared = false, .name = name};
  }
  static OwnedName shared(const std::string& name) {
    return {.owner = {}, .shared = true, .name = name};
  }
  static v1::StoreProfile for_url(const std::string& url) {
    v1::StoreProfile profile;
    profile.set_url(url);
    if (url.starts_with("obs://")) profile.set_endpoint("https://obs.example.org");
    return profile;
  }
  Decision put(const OwnedName& key, v1::StoreProfile profile) {
    return taken(
        decide_set_store(ledger_, {.key = key, .profile = std::move(profile), .actor = key.owner}));
  }
  Decision put(const OwnedName& key, const std::string& url) { return put(key, for_url(url)); }
  std::string refused(const OwnedName& key, v1::StoreProfile profile) {
    const Decision decision = put(key, std::move(profile));
    return decision.refusal ? decision.refusal->message : "";
  }
  Decision taken(Decision decision) {
    for (const EventBody& event : decision.events)
      apply(ledger_, JournalIndex(++index_), {.at = {}, .body = event});
    return decision;
  }
  std::string found(const std::string& owner, const std::string& url) {
    const auto* entry = find_store(ledger_, owner, *store::parse_url(url));
    return entry == nullptr ? "" : store_text(entry->first);
  }

  Ledger ledger_;
  std::uint64_t index_ = 0;
};

TEST_F(StoresTest, TheStoreThatNamesMostOfAUrlCounts) {
  put(shared("all"), "obs://");
  EXPECT_EQ(found("ann", "obs://data/wiki"), "shared store 'all'");
  EXPECT_EQ(found("ann", "s3://data/wiki"), "");
  put(of("ann", "data"), "obs://data");
  put(of("bob", "wiki"), "obs://data/wiki");
  EXPECT_EQ(found("ann", "obs://data/wiki"), "store 'data' of user 'ann'") << "bob's is bob's";
  EXPECT_EQ(found("bob", "obs://data/wiki/x"), "store 'wiki' of user 'bob'");
  EXPECT_EQ(found("bob", "obs://data/other"), "shared store 'all'");
  put(of("bob", "mine"), "obs://");
  EXPECT_EQ(found("bob", "obs://data/other"), "store 'mine' of user 'bob'")
      << "of two that name as much";
}

TEST_F(StoresTest, OneOwnerHasOneStoreForAUrl) {
  put(of("ann", "one"), "obs://data");
  const Decision second = put(of("ann", "two"), "obs://data/");
  ASSERT_TRUE(second.refusal);
  EXPECT_EQ(second.refusal->code, ErrorCode::Conflict);
  EXPECT_EQ(second.refusal->message,
            "setting store 'two' of user 'ann': store 'one' of user 'ann' is for 'obs://data' "
            "already; change that one, or remove it");
  EXPECT_FALSE(put(of("ann", "one"), "obs://data").refusal) << "it may be set again";
  EXPECT_FALSE(put(of("bob", "two"), "obs://data").refusal);
  EXPECT_FALSE(put(shared("two"), "obs://data").refusal);
}

TEST_F(StoresTest, ItsSecretIsOfTheSameOwner) {
  v1::StoreProfile profile = for_url("obs://data");
  profile.set_user("AKID");
  profile.set_secret("key");
  EXPECT_EQ(refused(of("ann", "data"), profile),
            "setting store 'data' of user 'ann': there is no secret 'key' of the same owner; "
            "`muster secret set key` makes it");
  ledger_.secrets[of("ann", "key")] = {.item = "i", .set_at = {}, .actor = "ann"};
  EXPECT_EQ(refused(of("ann", "data"), profile), "");
  EXPECT_THAT(refused(shared("data"), profile), HasSubstr("`muster secret set key --shared`"))
      << "a shared store would give ann's key to everybody";
}

TEST_F(StoresTest, ProfilesNamesAndNumbersAreBounded) {
  EXPECT_THAT(refused(of("ann", "data"), for_url("data")), HasSubstr("url: begins with none of"));
  EXPECT_THAT(refused(of("ann", "a b"), for_url("s3://data")), HasSubstr("not a name"));
  for (std::size_t i = 0; i < kStoresOfUser; ++i)
    ASSERT_EQ(
        refused(of("ann", "s" + std::to_string(i)), for_url("s3://bucket" + std::to_string(i))),
        "");
  EXPECT_THAT(refused(of("ann", "more"), for_url("s3://more")),
              HasSubstr("64 stores of this user"));
  EXPECT_EQ(refused(of("ann", "s0"), for_url("s3://other")), "") << "a change is no further store";
  EXPECT_EQ(refused(of("bob", "more"), for_url("s3://more")), "");
}

TEST_F(StoresTest, WhatIsNotThereIsNotRemoved) {
  put(of("ann", "data"), "obs://data");
  EXPECT_FALSE(
      taken(decide_remove_store(ledger_, {.key = of("ann", "data"), .actor = "ann"})).refusal);
  EXPECT_EQ(found("ann", "obs://data/x"), "");
  const auto none = decide_remove_store(ledger_, {.key = of("ann", "data"), .actor = "ann"});
  ASSERT_TRUE(none.refusal);
  EXPECT_EQ(none.refusal->code, ErrorCode::NotFound);
}

TEST_F(StoresTest, AnAttemptGetsTheStoresOfItsInputsAndTheirKeys) {
  JobRecord job;
  job.owner = "ann";
  for (const auto& [name, from] : {std::pair("data", "obs://data/wiki"),
                                   {"more", "obs://data/x"},
                                   {"web", "https://host/a"},
                                   {"plain", "/data"}}) {
    v1::InputSpec& input = *job.spec.add_inputs();
    input.set_name(name);
    input.set_from(from);
  }
  EXPECT_THAT(refuse_stores(ledger_, job.spec, "ann")->message,
              HasSubstr("inputs.data ('obs://data/wiki'): there is no store of user 'ann' for it, "
                        "and none that is shared; `muster store add NAME obs://` makes one"));
  ledger_.secrets[of("ann", "key")] = {.item = "i1", .set_at = {}, .actor = "ann"};
  v1::StoreProfile profile = for_url("obs://data");
  profile.set_user("AKID");
  profile.set_secret("key");
  put(of("ann", "pangu"), profile);
  put(shared("web"), "https://host");
  EXPECT_FALSE(refuse_stores(ledger_, job.spec, "ann"));
  EXPECT_TRUE(refuse_stores(ledger_, job.spec, "bob")) << "ann's store is ann's";
  std::vector<PinnedSecret> secrets = {{.name = "hf", .item = "i0"}};
  const auto inputs = pinned_inputs(ledger_, job, secrets);
  ASSERT_TRUE(inputs) << inputs.error().message;
  ASSERT_EQ(inputs->size(), 3U) << "a plain path needs no store";
  EXPECT_EQ((*inputs)[0].input, "data");
  EXPECT_EQ((*inputs)[0].secret, "store 'pangu' of user 'ann'");
  EXPECT_EQ((*inputs)[1].profile.url(), "obs://data");
  EXPECT_EQ((*inputs)[2].secret, "");
  ASSERT_EQ(secrets.size(), 2U) << "each key once";
  EXPECT_EQ(secrets[1], (PinnedSecret{.name = "store 'pangu' of user 'ann'", .item = "i1"}));
  ledger_.secrets.erase(of("ann", "key"));
  EXPECT_THAT(pinned_inputs(ledger_, job, secrets).error().message,
              HasSubstr("the secret 'key' of store 'pangu' of user 'ann' is there no more"));
}

}  // namespace
}  // namespace muster::core
