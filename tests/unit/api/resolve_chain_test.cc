// The names in a submission become ids, paths and checkpoints; these are the parts of that which
// are pure.
#include "controller/api/resolve_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/complete_spec.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::JobSpec command(const std::string& name) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.set_engine("command");
  spec.mutable_code()->set_at("/srv");
  spec.mutable_launch()->add_run("true");
  spec.mutable_resources()->set_devices(1);
  return spec;
}
v1::JobSpec stage(const std::string& name, const std::vector<std::string>& after) {
  v1::JobSpec spec = command("llama." + name);
  spec.mutable_stage()->set_chain_name("llama");
  spec.mutable_stage()->set_name(name);
  for (const std::string& one : after) spec.mutable_schedule()->add_after("stage:" + one);
  return spec;
}
v1::InputSpec& add_input(v1::JobSpec& spec, const std::string& name, const std::string& from) {
  v1::InputSpec& input = *spec.add_inputs();
  input.set_name(name);
  input.set_from(from);
  return input;
}
google::protobuf::RepeatedPtrField<v1::JobSpec> chain_of(const std::vector<v1::JobSpec>& stages) {
  return {stages.begin(), stages.end()};
}
google::protobuf::RepeatedPtrField<v1::DoneStage> is_done(const std::string& stage,
                                                          const std::string& job) {
  google::protobuf::RepeatedPtrField<v1::DoneStage> done;
  v1::DoneStage& one = *done.Add();
  one.set_stage(stage);
  one.set_job_id(job);
  return done;
}
std::string chain_refused(const std::vector<v1::JobSpec>& stages,
                          const google::protobuf::RepeatedPtrField<v1::DoneStage>& done = {}) {
  const auto chain = complete_chain(chain_of(stages), done, {});
  if (chain) return "";
  EXPECT_EQ(chain.error().code, ErrorCode::InvalidArgument);
  return chain.error().message;
}
std::vector<std::string> texts(const google::protobuf::RepeatedPtrField<std::string>& list) {
  return {list.begin(), list.end()};
}

NamedJob ended(const std::string& id, const std::string& name,
               std::vector<std::pair<std::int64_t, std::uint32_t>> steps = {}) {
  NamedJob job{.id = JobId(id),
               .name = name,
               .phase = core::JobPhase::Succeeded,
               .out = "/out/" + id,
               .checkpoints = "/out/" + id + "/checkpoints"};
  job.layout = "megatron";
  for (const auto& [step, attempt] : steps)
    job.whole.push_back(
        {.attempt = AttemptNo(attempt),
         .step = step,
         .path = job.checkpoints + "/attempt-" + std::to_string(attempt) + "/iter"});
  return job;
}

Result<Resolved> filled(const std::vector<v1::JobSpec>& stages, const NamedJobs& named = {},
                        const google::protobuf::RepeatedPtrField<v1::DoneStage>& done = {}) {
  auto chain = complete_chain(chain_of(stages), done, {});
  EXPECT_TRUE(chain) << chain.error().message;
  if (!chain) return fail(chain.error());
  Submission submission{.doing = "submitting",
                        .jobs = std::move(chain->stages),
                        .ids = {},
                        .done = std::move(chain->done)};
  for (std::size_t i = 0; i < submission.jobs.size(); ++i)
    submission.ids.emplace_back("id-" + std::to_string(i));
  return fill_in(std::move(submission), named, "/out", "/inputs");
}
Result<Resolved> filled_alone(const v1::JobSpec& spec, const NamedJobs& named) {
  auto whole = complete_spec(spec, {});
  EXPECT_TRUE(whole) << whole.error().message;
  if (!whole) return fail(whole.error());
  return fill_in({.doing = "submitting", .jobs = {*whole}, .ids = {JobId("new")}, .done = {}},
                 named, "/out", "/inputs");
}

TEST(CompleteChain, StagesBehindEachOtherKnowWhoIsBeforeThem) {
  v1::JobSpec last = stage("eval", {"train"});
  last.mutable_launch()->add_run("${stages.prepare.out}");
  const auto chain =
      complete_chain(chain_of({stage("prepare", {}), stage("train", {"prepare"}), last}), {}, {});
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_EQ(chain->name, "llama");
  std::vector<std::string> before;
  for (const v1::StageDir& dir : chain->stages[2].resolved.stage().dirs())
    before.push_back(dir.stage());
  EXPECT_THAT(before, ElementsAre("prepare", "train")) << "through another one, too";
  EXPECT_EQ(chain->stages[2].spec.stage().number(), 3U);
  EXPECT_EQ(chain->stages[2].spec.stage().count(), 3U);
  EXPECT_TRUE(chain->stages[2].spec.recovery().has_window()) << "defaults are filled in";
}

TEST(CompleteChain, WhatMakesNoChainIsRefusedByItsPlace) {
  EXPECT_THAT(chain_refused({}), HasSubstr("it has 0 stages"));
  EXPECT_THAT(chain_refused(std::vector<v1::JobSpec>(33, stage("a", {}))),
              HasSubstr("it has 33 stages"));
  EXPECT_THAT(chain_refused({stage("a", {}), stage("a", {})}),
              HasSubstr("stages.a: is there twice"));
  EXPECT_THAT(chain_refused({stage("train", {"prepare"}), stage("prepare", {})}),
              HasSubstr("stages.train.schedule.after[0]: stage 'prepare' comes behind this one; a "
                        "stage names only those before it"));
  EXPECT_THAT(chain_refused({stage("prepare", {}), stage("train", {"prepar"})}),
              HasSubstr("stages.train.schedule.after[0]: there is no stage 'prepar' in this chain; "
                        "did you mean 'prepare'?"));
  EXPECT_THAT(chain_refused({stage("a", {}), command("llama.b")}),
              HasSubstr("job 'llama.b' does not say which stage it is"));
  v1::JobSpec other = stage("b", {});
  other.set_name("lama.b");
  other.mutable_stage()->set_chain_name("lama");
  EXPECT_THAT(
      chain_refused({stage("a", {}), other}),
      HasSubstr(
          "stages.b.stage.chain_name: 'lama' is not 'llama', the name of the chain's first stage"));
  v1::JobSpec bad = stage("b", {});
  bad.clear_engine();
  bad.mutable_launch()->add_run("${stages.a.out}");
  EXPECT_THAT(chain_refused({stage("a", {}), bad}), HasSubstr("stages.b.engine: is missing"));
  bad.set_engine("command");
  EXPECT_THAT(
      chain_refused({stage("a", {}), bad}),
      HasSubstr(
          "stages.b.launch.run[1]: '${stages.a.out}': there is no stage 'a' before this one"));
  v1::JobSpec input = stage("a", {});
  add_input(input, "data", "stage:z/tokens");
  EXPECT_THAT(chain_refused({input}),
              HasSubstr("stages.a.inputs.data: there is no stage 'z' in this chain"));
  EXPECT_THAT(chain_refused({stage("a", {})}, is_done("a", "x")),
              HasSubstr("stages.a: is to be submitted, and to be done already"));
}

TEST(CompleteChain, PathsStayBelowTheirStage) {
  v1::JobSpec input = stage("b", {"a"});
  add_input(input, "data", "stage:a/../../etc");
  EXPECT_THAT(chain_refused({stage("a", {}), input}), HasSubstr("stages.b.inputs.data: "));
}

TEST(CompleteSpec, AJobAloneIsNoStageAndTakesItsOwnFetches) {
  v1::JobSpec spec = command("alone");
  spec.mutable_stage()->set_name("a");
  google::protobuf::RepeatedPtrField<v1::JobFetches> fetches;
  fetches.Add()->set_job_name("alone");
  fetches[0].add_fetches()->set_dir("/old/strategy");
  const auto job = complete_spec(spec, fetches);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_FALSE(job->spec.has_stage());
  ASSERT_EQ(job->resolved.fetches_size(), 1);
  EXPECT_EQ(job->resolved.fetches(0).dir(), "/old/strategy");
  for (const char* dir : {"relative", "/a/../b", "${stages.x.out}/y", "/a${nope}", "/a\nb"}) {
    fetches[0].mutable_fetches(0)->set_dir(dir);
    const auto refused = complete_spec(spec, fetches);
    ASSERT_FALSE(refused) << dir;
    EXPECT_THAT(refused.error().message, HasSubstr("is no directory to fetch")) << dir;
  }
  fetches[0].mutable_fetches(0)->set_dir("${stages.x.out}/y");
  fetches[0].mutable_fetches(0)->set_stage("x");
  EXPECT_TRUE(complete_spec(spec, fetches));
  fetches[0].mutable_fetches(0)->set_below(std::string(1 << 20, 'x'));
  EXPECT_THAT(complete_spec(spec, fetches).error().message, HasSubstr("more than 65536 bytes"));
  fetches[0].mutable_fetches(0)->clear_below();
  fetches[0].set_job_name("another");
  EXPECT_THAT(complete_spec(spec, fetches).error().message, HasSubstr("which is not submitted"));
}

TEST(Resolve, StagesBecomeIdsAndDirectories) {
  v1::JobSpec train = stage("train", {"prepare"});
  add_input(train, "data", "stage:prepare/tokens/wiki");
  v1::JobSpec eval = stage("eval", {});
  eval.set_output_dir("/results");
  eval.mutable_start()->set_from("stage:train");
  eval.mutable_start()->set_as(v1::START_AS_RESUME);
  add_input(eval, "vocab", "stage:prepare/vocab");
  const auto resolved = filled({stage("prepare", {}), train, eval});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->jobs[0].resolved.after_size(), 0);
  EXPECT_EQ(resolved->jobs[1].resolved.stage().chain(), "id-0");
  EXPECT_THAT(texts(resolved->jobs[1].resolved.after()), ElementsAre("id-0"));
  EXPECT_EQ(resolved->jobs[1].resolved.inputs().at("data"), "/out/id-0/tokens/wiki");
  ASSERT_EQ(resolved->jobs[1].resolved.stage().dirs_size(), 1);
  EXPECT_EQ(resolved->jobs[1].resolved.stage().dirs(0).job(), "id-0");
  EXPECT_EQ(resolved->jobs[1].resolved.stage().dirs(0).out(), "/out/id-0");
  EXPECT_THAT(texts(resolved->jobs[2].resolved.after()), ElementsAre("id-1", "id-0"))
      << "who takes something from a stage waits for it";
  EXPECT_EQ(resolved->jobs[2].resolved.start().dir(), "/out/id-1/checkpoints");
  EXPECT_FALSE(resolved->jobs[2].resolved.start().has_point()) << "the end of that stage tells it";
  EXPECT_EQ(resolved->jobs[2].resolved.inputs().at("vocab"), "/out/id-0/vocab");
}

TEST(Resolve, AStageThatIsDoneIsStoodForByItsJob) {
  v1::JobSpec train = stage("train", {"prepare"});
  train.mutable_start()->set_from("stage:prepare");
  train.mutable_start()->set_as(v1::START_AS_RESUME);
  train.mutable_launch()->add_run("${stages.prepare.out}");
  NamedJob done = ended("0aaaaaaaaaa01", "llama.prepare", {{10, 1}, {20, 2}});
  done.archived = true;
  const auto resolved =
      filled({train}, {{"0aaaaaaaaaa01", done}}, is_done("prepare", "0aaaaaaaaaa01"));
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_THAT(texts(resolved->jobs[0].resolved.after()), ElementsAre("0aaaaaaaaaa01"));
  EXPECT_EQ(resolved->jobs[0].resolved.stage().dirs(0).out(), "/out/0aaaaaaaaaa01");
  EXPECT_EQ(resolved->jobs[0].resolved.start().point().step(), 20);
  EXPECT_EQ(resolved->archived.at(JobId("0aaaaaaaaaa01")).phase, core::JobPhase::Succeeded);
  const auto wrong = [&](NamedJob job) {
    return filled({train}, {{"0aaaaaaaaaa01", job}}, is_done("prepare", "0aaaaaaaaaa01")).error();
  };
  done.phase = core::JobPhase::Failed;
  EXPECT_EQ(wrong(done).code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(wrong(done).message,
              HasSubstr("submitting chain 'llama': stage 'prepare' is to be done by job "
                        "'llama.prepare' (0aaaaaaaaaa01), which is failed"));
  EXPECT_THAT(wrong(ended("0aaaaaaaaaa01", "qwen.prepare")).message,
              HasSubstr("which is not 'llama.prepare'"));
}

TEST(Resolve, AJobAloneTakesFromAnother) {
  v1::JobSpec spec = command("late");
  spec.mutable_start()->set_from("job:base");
  spec.mutable_start()->set_as(v1::START_AS_RESUME);
  add_input(spec, "data", "job:base/tokens");
  add_input(spec, "plain", "/data/wiki");
  const NamedJobs named = {{"base", ended("0aaaaaaaaaa01", "base", {{10, 1}, {30, 1}, {30, 2}})}};
  auto resolved = filled_alone(spec, named);
  ASSERT_TRUE(resolved) << resolved.error().message;
  const v1::ResolvedSpec& stored = resolved->jobs[0].resolved;
  EXPECT_EQ(stored.start().dir(), "/out/0aaaaaaaaaa01/checkpoints");
  EXPECT_EQ(stored.start().point().step(), 30);
  EXPECT_EQ(stored.start().point().attempt(), 2U);
  EXPECT_EQ(stored.start().point().path(), "/out/0aaaaaaaaaa01/checkpoints/attempt-2/iter");
  EXPECT_EQ(stored.inputs().at("data"), "/out/0aaaaaaaaaa01/tokens");
  EXPECT_EQ(stored.inputs().at("plain"), "/data/wiki");
  EXPECT_EQ(stored.after_size(), 0) << "another job is not waited for";
  // A directory below the job's own: checkpoints there are unknown.
  spec.mutable_start()->set_from("job:base/exported");
  spec.mutable_start()->set_step(5);
  resolved = filled_alone(spec, named);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->jobs[0].resolved.start().dir(), "/out/0aaaaaaaaaa01/exported");
  EXPECT_EQ(resolved->jobs[0].resolved.start().point().attempt(), 0U);
  EXPECT_EQ(resolved->jobs[0].resolved.start().point().step(), 5);
  spec.mutable_start()->set_from("/data/base");
  spec.mutable_start()->set_as(v1::START_AS_WEIGHTS);
  spec.mutable_start()->clear_step();
  spec.mutable_launch()->add_run("${start.dir}");
  resolved = filled_alone(spec, named);
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(resolved->jobs[0].resolved.start().dir(), "/data/base");
  EXPECT_FALSE(resolved->jobs[0].resolved.start().has_point());
}

TEST(Resolve, WhatIsInAStoreHasAPlaceOnTheNodes) {
  v1::JobSpec spec = command("late");
  add_input(spec, "data", "obs://bucket/wiki/train/");
  add_input(spec, "all", "s3://bucket");
  add_input(spec, "vocab", "https://host:8443/a/tokenizer.model");
  const auto resolved = filled_alone(spec, {});
  ASSERT_TRUE(resolved) << resolved.error().message;
  const auto& inputs = resolved->jobs[0].resolved.inputs();
  EXPECT_EQ(inputs.at("data"), "/inputs/jobs/new/data/train");
  EXPECT_EQ(inputs.at("all"), "/inputs/jobs/new/all/bucket");
  EXPECT_EQ(inputs.at("vocab"), "/inputs/jobs/new/vocab/tokenizer.model");
}

TEST(Resolve, CheckpointsOfAnotherFormAreRefused) {
  v1::JobSpec spec = command("late");
  spec.mutable_start()->set_from("job:base");
  spec.mutable_start()->set_as(v1::START_AS_RESUME);
  NamedJob base = ended("0aaaaaaaaaa01", "base", {{10, 1}});
  base.layout = "mindformers";
  const auto resolved = filled_alone(spec, {{"base", base}});
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(resolved.error().message,
              HasSubstr("submitting job 'late': start.from: the checkpoints of job 'base' "
                        "(0aaaaaaaaaa01) are of layout 'mindformers', and this job reads "
                        "'command'"));
  base.layout = "mindspeed-mm";
  EXPECT_TRUE(filled_alone(spec, {{"base", base}})) << "the same files";
}

TEST(PickCheckpoint, TheNewestThatCountsOrTheOneThatIsAskedFor) {
  NamedJob job = ended("0aaaaaaaaaa01", "base", {{10, 1}, {20, 1}, {40, 2}});
  job.whole[2].quarantined = true;
  v1::StartSpec start;
  start.set_as(v1::START_AS_RESUME);
  EXPECT_EQ((*pick_checkpoint(start, job))->step(), 20);
  start.set_step(40);
  EXPECT_EQ((*pick_checkpoint(start, job))->step(), 40) << "quarantined, and yet asked for by name";
  job.whole.push_back({.attempt = AttemptNo(1), .step = 40, .path = "/sound"});
  EXPECT_EQ((*pick_checkpoint(start, job))->path(), "/sound")
      << "of two of a step the one that was not";
  job.whole.pop_back();
  start.set_step(15);
  auto missing = pick_checkpoint(start, job);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::Unsatisfiable);
  EXPECT_EQ(missing.error().message,
            "start.step: job 'base' (0aaaaaaaaaa01) has no whole checkpoint of step 15; the "
            "nearest are 10 and 20 (`muster ckpt ls 0aaaaaaaaaa01` lists them)");
  start.set_step(50);
  EXPECT_THAT(pick_checkpoint(start, job).error().message, HasSubstr("the nearest is 40"));
  start.set_as(v1::START_AS_RESUME_OR_SCRATCH);
  EXPECT_FALSE(pick_checkpoint(start, job))
      << "a step that is asked for and not there is a mistake";
  job.whole.clear();
  EXPECT_FALSE(*pick_checkpoint(start, job)) << "from the beginning then";
  start.clear_step();
  start.set_as(v1::START_AS_RESUME);
  const std::string none = "start.from: job 'base' (0aaaaaaaaaa01) has no whole checkpoint";
  EXPECT_EQ(pick_checkpoint(start, job).error().message,
            none + ", and has ended; write start.as: resume-or-scratch to begin anew without");
  job.phase = core::JobPhase::Running;
  EXPECT_EQ(pick_checkpoint(start, job).error().message,
            none +
                "; wait until it has saved one, or write start.as: resume-or-scratch to begin anew "
                "without");
  start.set_as(v1::START_AS_WEIGHTS);
  EXPECT_EQ(pick_checkpoint(start, job).error().message,
            none +
                "; wait until it has saved one, or name the directory that holds the weights "
                "(start.from: job:base/DIR)");
  job.whole.push_back({.attempt = AttemptNo(1), .step = 10, .path = "", .quarantined = true});
  start.set_as(v1::START_AS_RESUME);
  EXPECT_EQ(
      pick_checkpoint(start, job).error().message,
      none +
          " but such as were quarantined; name one of them with start.step, or write start.as: "
          "resume-or-scratch to begin anew");
}

// Regression: `muster resume --from 80` accepted a checkpoint that was saved with --no-save-optim,
// and the job continued without its optimizer.
TEST(PickCheckpoint, NothingGoesOnFromWeightsAlone) {
  NamedJob job = ended("0aaaaaaaaaa01", "base", {{10, 1}, {20, 1}});
  for (core::CheckpointRecord& one : job.whole) one.quarantined = one.weights_alone = true;
  v1::StartSpec start;
  start.set_as(v1::START_AS_RESUME);
  EXPECT_EQ(pick_checkpoint(start, job).error().message,
            "start.from: job 'base' (0aaaaaaaaaa01) has saved weights alone, without their "
            "optimizer; write start.as: weights to begin with them, or start.as: "
            "resume-or-scratch to begin anew");
  start.set_step(20);
  for (const v1::StartAs as : {v1::START_AS_RESUME, v1::START_AS_RESUME_OR_SCRATCH}) {
    start.set_as(as);
    EXPECT_EQ(pick_checkpoint(start, job).error().message,
              "start.step: of step 20 job 'base' (0aaaaaaaaaa01) has weights alone, saved without "
              "their optimizer; write start.as: weights to begin with them");
  }
  start.set_as(v1::START_AS_WEIGHTS);
  EXPECT_EQ((*pick_checkpoint(start, job))->step(), 20);
  start.clear_step();
  EXPECT_EQ((*pick_checkpoint(start, job))->step(), 20);
}

}  // namespace
}  // namespace muster::controller
