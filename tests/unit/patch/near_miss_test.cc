// Regression: `launch.patch: {a.yaml: {parallel_config.model_paralel: 2}}` added a key that nothing
// reads, and the job trained with the old size.
#include <gmock/gmock.h>

#include "common/compat/patch/patch.h"

namespace muster::patch {
namespace {

std::vector<std::string> misses(std::string_view text, const std::vector<Change>& changes) {
  std::vector<std::string> found;
  EXPECT_TRUE(changed_file("/a.yaml", text, changes, &found));
  return found;
}

TEST(NearMiss, AKeyThatIsAddedNextToOneOfNearlyItsNameIsReported) {
  constexpr std::string_view kText =
      "parallel_config:\n  model_parallel: 1\n  pipeline_stage: 1\nseed: 0\n";
  EXPECT_THAT(misses(kText, {{"parallel_config.model_paralel", "2"}}),
              testing::ElementsAre("'parallel_config.model_paralel' is not there, and is added; "
                                   "did you mean 'model_parallel'?"));
  EXPECT_THAT(misses(kText, {{"sed", "2"}}), testing::SizeIs(1));
  EXPECT_THAT(misses(kText, {{"parallel_config.model_parallel", "2"},
                             {"parallel_config.vocab_emb_dp", "true"}}),
              testing::IsEmpty());
}

TEST(NearMiss, WhatIsMergedIntoTheMapIsThere) {
  EXPECT_THAT(misses("base: &b\n  learning_rate: 1\nrun:\n  <<: *b\n  learning_rates: 2\n",
                     {{"run.learning_rate", "3"}}),
              testing::IsEmpty());
}

TEST(NearMiss, WhatTheSpecItselfAddsIsNoOtherKeysName) {
  EXPECT_THAT(misses("a: 1\n", {{"callbacks", "{}"}, {"callbacks.every", "1"}}),
              testing::IsEmpty());
}

}  // namespace
}  // namespace muster::patch
