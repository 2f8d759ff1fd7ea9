// What `muster resume` begins with: which checkpoint it uses, what it prints where there is none,
// and the name of the new job.
#include "client/commands/job/resume_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::client {
namespace {

using testing::HasSubstr;

v1::Job job(const std::vector<std::tuple<std::uint32_t, std::int64_t, bool>>& checkpoints) {
  v1::Job job;
  job.set_id("06f3kq8z2m1ab");
  job.mutable_spec()->set_name("llama");
  for (const auto& [attempt, step, quarantined] : checkpoints) {
    v1::Checkpoint& one = *job.add_checkpoints();
    one.set_attempt(attempt);
    one.set_step(step);
    one.set_quarantined(quarantined);
    one.set_path("/c/attempt-" + std::to_string(attempt) + "/" + std::to_string(step));
  }
  return job;
}

std::string chosen(const std::vector<std::tuple<std::uint32_t, std::int64_t, bool>>& checkpoints,
                   std::optional<std::int64_t> step = {}) {
  const auto source = choose_checkpoint(job(checkpoints), "resuming", step);
  if (!source) return source.error().message;
  if (auto there = check_checkpoint(*source); !there) return there.error().message;
  return source->checkpoint.path + (source->quarantined ? " (quarantined)" : "");
}

TEST(ResumeSource, TheNewestThatIsNotQuarantined) {
  EXPECT_EQ(chosen({{1, 4, false}, {1, 8, false}}), "/c/attempt-1/8");
  EXPECT_EQ(chosen({{1, 4, false}, {2, 4, false}, {1, 8, true}}), "/c/attempt-2/4")
      << "the last attempt's";
}

// Regression: it printed that there was no checkpoint of that step, although `ckpt ls` listed the
// step.
TEST(ResumeSource, OneThatIsAskedForByItsStepIsMeant) {
  EXPECT_EQ(chosen({{1, 4, false}, {1, 8, true}}, 8), "/c/attempt-1/8 (quarantined)");
  EXPECT_EQ(chosen({{1, 8, false}, {2, 8, true}}, 8), "/c/attempt-1/8") << "the sound one of two";
}

TEST(ResumeSource, WhatIsNotThereIsReportedWithWhatIs) {
  EXPECT_EQ(chosen({{1, 4, false}, {1, 8, true}}, 5),
            "resuming job 'llama' (06f3kq8z2m1ab): it has no whole checkpoint of step 5; the "
            "newest are 4, 8");
  EXPECT_THAT(chosen({}, 5), HasSubstr("it has no whole checkpoint ('muster ckpt ls "
                                       "06f3kq8z2m1ab'), and weights alone are none"));
  EXPECT_EQ(
      chosen({{1, 4, true}, {1, 8, true}}),
      "resuming job 'llama' (06f3kq8z2m1ab): all its whole checkpoints (steps 4, 8) were "
      "quarantined: they hold weights alone, are torn, or two attempts that went on from each "
      "failed alike; 'muster events 06f3kq8z2m1ab' says which; of torn ones that are mended "
      "name the step to load all the same, from weights a new job begins with start: {from: "
      "job:JOB, as: weights}");
}

v1::JobSpec named(const std::string& name, const std::string& from = {}) {
  v1::JobSpec spec;
  spec.set_name(name);
  if (from.empty()) return spec;
  spec.mutable_start()->set_from(from);
  spec.mutable_start()->set_as(v1::START_AS_RESUME);
  return spec;
}

std::string base(const v1::JobSpec& spec, const std::string& before = {}) {
  return base_name(spec, "r", [&](const std::string& id) { return id == "1" ? before : ""; });
}

TEST(NextName, OfAResumedJobItIsThatOfTheFirst) {
  EXPECT_EQ(base(named("llama")), "llama");
  EXPECT_EQ(base(named("llama-r2", "job:1"), "llama"), "llama");
  EXPECT_EQ(base(named("llama-r13", "job:1"), "llama-r12"), "llama");
  EXPECT_EQ(base(named("llama-r2", "job:gone")), "llama")
      << "what it goes on from is not known any more";
  v1::JobSpec train = named("llama-r2.train", "stage:transform/resharded");
  train.mutable_stage()->set_name("train");
  train.mutable_stage()->set_chain_name("llama-r2");
  EXPECT_EQ(base(train), "llama");
}

// Regression: a third run of "ppo-r2" was named like a run of "ppo", whose name it would have
// repeated.
TEST(NextName, WhatItsUserCalledItIsKept) {
  EXPECT_EQ(base(named("ppo-r2")), "ppo-r2");
  EXPECT_EQ(base(named("ppo-r2", "job:1"), "warm-up"), "ppo-r2")
      << "it only began with another's checkpoint";
  EXPECT_EQ(base(named("ppo-r2", "/data/ckpt")), "ppo-r2");
  EXPECT_EQ(base(named("ppo-r2-r2", "job:1"), "ppo-r2"), "ppo-r2");
  EXPECT_EQ(base(named("ppo-r2-r3", "job:1"), "ppo-r2-r2"), "ppo-r2");
  v1::JobSpec stage = named("ppo-r2.sample", "job:1");
  stage.mutable_stage()->set_name("sample");
  stage.mutable_stage()->set_chain_name("ppo-r2");
  EXPECT_EQ(base(stage, "warm-up"), "ppo-r2-sample");
}

}  // namespace
}  // namespace muster::client
