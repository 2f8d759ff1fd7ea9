#include "common/engine/model/resume_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Reshard : public testing::Test {
 protected:
  void of(const char* engine, const std::vector<std::string>& args) {
    before_ = spec_of(engine, args, 2, 8);
    before_.mutable_launch()->set_config("a.yaml");
    before_.mutable_runtime()->set_image("mindformers:1.0");
    before_.mutable_runtime()->add_setup("source set_env.sh");
    (*before_.mutable_runtime()->mutable_env())["HCCL_CONNECT_TIMEOUT"] = "1200";
    if (engine != std::string_view("mindformers")) before_.mutable_launch()->clear_config();
    resolved_.Clear();
    ask_ = {.before = &before_,
            .resolved = &resolved_,
            .job_id = "01j8x4a0b7c2d",
            .checkpoint = {.step = 40,
                           .path = "/out/j/checkpoints/attempt-2/checkpoint",
                           .save_dir = "/out/j/checkpoints/attempt-2",
                           .shards = 16},
            .after = before_,
            .name = "tiny-r2"};
  }
  void nodes(std::uint32_t count) { ask_.after.mutable_resources()->set_nodes(count); }
  std::vector<v1::JobSpec> planned() {
    auto planned = plan_resume(ask_);
    EXPECT_TRUE(planned.has_value()) << (planned ? "" : planned.error().message);
    return planned ? planned->jobs : std::vector<v1::JobSpec>{};
  }
  std::string refused() {
    const auto specs = plan_resume(ask_);
    EXPECT_FALSE(specs.has_value());
    return specs ? "" : specs.error().message;
  }

  // As the job was, but out of its chain.
  void ask_as_before() {
    ask_.after = before_;
    leave_chain(ask_.after, resolved_);
  }

  v1::JobSpec before_;
  v1::ResolvedSpec resolved_;
  ResumeAsk ask_;
};

std::vector<std::string> words(const google::protobuf::RepeatedPtrField<std::string>& list,
                               int from) {
  return {list.begin() + from, list.end()};
}
std::vector<std::string> after(const v1::JobSpec& spec) {
  return {spec.schedule().after().begin(), spec.schedule().after().end()};
}

TEST_F(Reshard, the_same_size_is_one_job) {
  of("mindformers", {"--train_dataset_dir", "/data"});
  before_.mutable_schedule()->add_after("01j000");
  ask_as_before();
  const auto specs = planned();
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_EQ(specs[0].name(), "tiny-r2");
  EXPECT_EQ(specs[0].start().from(), "job:01j8x4a0b7c2d");
  EXPECT_EQ(specs[0].start().as(), v1::START_AS_RESUME);
  EXPECT_EQ(specs[0].start().step(), 40);
  EXPECT_FALSE(specs[0].has_schedule());
  EXPECT_FALSE(specs[0].has_stage());
}

TEST_F(Reshard, mindformers_at_another_size_is_a_chain_of_three) {
  of("mindformers", {"--train_dataset_dir", "/data"});
  before_.mutable_launch()->set_lockstep(true);
  before_.mutable_success()->set_last_step(true);
  ask_.after = before_;
  nodes(1);
  const auto specs = planned();
  ASSERT_EQ(specs.size(), 3U);
  const v1::JobSpec &strategy = specs[0], &transform = specs[1], &train = specs[2];

  EXPECT_EQ(strategy.name(), "tiny-r2.strategy");
  EXPECT_EQ(strategy.launch().mode(), v1::LAUNCH_MODE_STRATEGY);
  EXPECT_EQ(strategy.resources().nodes(), 1U);
  EXPECT_FALSE(strategy.has_start() || strategy.has_success() || strategy.has_resume() ||
               strategy.launch().has_lockstep());
  EXPECT_THAT(after(strategy), ElementsAre());

  EXPECT_EQ(transform.engine(), "command");
  EXPECT_EQ(transform.launch().per(), v1::LAUNCH_PER_ONCE);
  EXPECT_THAT(
      words(transform.launch().run(), 3),
      ElementsAre("transform_ckpt", "python3", "/out/j/checkpoints/attempt-2/strategy",
                  "${stages.strategy.out}/checkpoints", "8", "${out}/resharded", "directory"));
  EXPECT_EQ(transform.runtime().SerializeAsString().size(),
            before_.runtime().SerializeAsString().size());
  EXPECT_EQ(transform.code().at(), "/srv");
  EXPECT_EQ(transform.resources().devices(), 1U);
  EXPECT_EQ(transform.resources().type(), "ascend");
  EXPECT_EQ(transform.checkpoint().layout(), "mindformers");
  EXPECT_EQ(transform.success().file(), "resharded");
  EXPECT_EQ(transform.start().from(), "job:01j8x4a0b7c2d");
  EXPECT_THAT(after(transform), ElementsAre("stage:strategy"));

  EXPECT_EQ(train.start().from(), "stage:transform/resharded");
  EXPECT_EQ(train.start().step(), 40);
  EXPECT_EQ(train.launch().args().size(), 2);
  EXPECT_TRUE(train.success().last_step());
  EXPECT_THAT(after(train), ElementsAre("stage:transform"));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(specs[i].stage().chain_name(), "tiny-r2");
    EXPECT_EQ(specs[i].stage().number(), i + 1);
    EXPECT_EQ(specs[i].stage().count(), 3U);
  }
}

TEST_F(Reshard, the_transform_goes_to_a_cpu_slot_where_there_is_one) {
  of("mindformers", {});
  before_.mutable_resources()->add_hosts("n1");
  before_.mutable_resources()->add_hosts("n2");
  ask_.after = before_;
  nodes(1);
  EXPECT_EQ(planned()[1].resources().hosts().size(), 2);
  ask_.transform_type = "cpu";
  EXPECT_EQ(planned()[1].resources().type(), "cpu");
  EXPECT_EQ(planned()[1].resources().hosts().size(), 0);
}

TEST_F(Reshard, a_model_that_is_not_split_has_no_strategy) {
  of("mindformers", {});
  nodes(1);
  ask_.after.mutable_resources()->set_devices(1);
  const auto to_one = planned();
  ASSERT_EQ(to_one.size(), 2U);
  EXPECT_THAT(words(to_one[0].launch().run(), 5),
              ElementsAre("/out/j/checkpoints/attempt-2/strategy", "", "1", "${out}/resharded",
                          "directory"));
  EXPECT_THAT(after(to_one[0]), ElementsAre());

  of("mindformers", {});
  before_.mutable_resources()->set_nodes(1);
  before_.mutable_resources()->set_devices(1);
  const auto from_one = planned();
  ASSERT_EQ(from_one.size(), 3U);
  EXPECT_THAT(
      words(from_one[1].launch().run(), 5),
      ElementsAre("", "${stages.strategy.out}/checkpoints", "16", "${out}/resharded", "directory"));
}

// Otherwise attempt 1 of the new job would write into attempt 1 of the old one.
TEST_F(Reshard, a_checkpoint_directory_of_its_own) {
  of("mindformers", {});
  before_.mutable_checkpoint()->set_dir("/data/ckpt");
  ask_.after = before_;
  EXPECT_EQ(planned()[0].checkpoint().dir(), "/data/ckpt/tiny-r2");
  nodes(1);
  const auto specs = planned();
  EXPECT_EQ(specs[0].checkpoint().dir(), "/data/ckpt/tiny-r2.strategy");
  EXPECT_EQ(specs[1].launch().run(6), "/data/ckpt/tiny-r2.strategy");
  EXPECT_EQ(specs[1].success().file(), "/data/ckpt/tiny-r2.resharded");
  EXPECT_EQ(specs[2].start().from(), "/data/ckpt/tiny-r2.resharded");
  EXPECT_THAT(after(specs[2]), ElementsAre("stage:transform"));

  ask_.after.mutable_checkpoint()->set_dir("/data/${job.name}/x");
  EXPECT_EQ(planned()[2].checkpoint().dir(), "/data/tiny-r2/x");
  ask_.after.mutable_checkpoint()->set_dir("${out}/x");
  EXPECT_EQ(planned()[1].launch().run(6), "${stages.strategy.out}/x");
  EXPECT_EQ(planned()[2].checkpoint().dir(), "${out}/x");
}

TEST_F(Reshard, every_stage_is_a_sound_spec) {
  of("mindformers", {"--train_dataset_dir", "/data"});
  nodes(1);
  for (const v1::JobSpec& spec : planned()) EXPECT_EQ(problem_text(spec), "") << spec.name();
}

TEST_F(Reshard, a_new_parallel_configuration_of_as_many_ranks_is_asked_for) {
  of("mindformers", {});
  EXPECT_EQ(planned().size(), 1U);
  ask_.cut_again = true;
  EXPECT_EQ(planned().size(), 3U);
  of("torch", {});
  ask_.cut_again = true;
  EXPECT_THAT(refused(), HasSubstr("--reshard is for checkpoints of MindFormers"));
}

TEST_F(Reshard, what_the_engine_cuts_itself_is_one_job) {
  of("mindformers", {});
  ask_.checkpoint.path = "/out/j/checkpoints/attempt-2/checkpoint/iteration_00000040";
  nodes(1);
  EXPECT_EQ(planned().size(), 1U);
  of("megatron", {"--tensor-model-parallel-size", "4", "--ckpt-format", "torch_dist"});
  ask_.after.mutable_launch()->set_args(1, "2");
  nodes(1);
  EXPECT_EQ(planned().size(), 1U);
  of("torch", {});
  nodes(4);
  EXPECT_EQ(planned().size(), 1U);
}

TEST_F(Reshard, megatrons_parts_fit_one_tensor_and_pipeline_size) {
  of("megatron", {"--tensor-model-parallel-size", "4", "--ckpt-format", "torch"});
  nodes(1);
  EXPECT_EQ(planned().size(), 1U);  // only another number of data-parallel ranks
  ask_.after.mutable_launch()->set_args(1, "2");
  EXPECT_THAT(refused(), AllOf(HasSubstr("--tensor-model-parallel-size 2 in place of 4"),
                               HasSubstr("tools/checkpoint/convert.py")));
  // Older releases have no --ckpt-format, and are recognized by their files.
  of("megatron", {"--tensor-model-parallel-size", "4"});
  ask_.after.mutable_launch()->add_args("--pipeline-model-parallel-size");
  ask_.after.mutable_launch()->add_args("2");
  EXPECT_THAT(refused(), HasSubstr("--pipeline-model-parallel-size 2 in place of 1"));
  ask_.checkpoint.shards = 1;
  EXPECT_EQ(planned().size(), 1U);
}

TEST_F(Reshard, several_files_of_deepspeed_fit_one_number_of_ranks) {
  of("deepspeed", {});
  EXPECT_EQ(planned().size(), 1U);
  nodes(1);
  EXPECT_THAT(refused(), AllOf(HasSubstr("8 ranks in place of 16"), HasSubstr("ds_to_universal.py"),
                               HasSubstr("the checkpoint has 16 files"),
                               HasSubstr("checkpoint.load_universal: true"),
                               HasSubstr("false in resume.patch")));
  const auto whole = is_whole(before_, ask_.checkpoint);
  ASSERT_FALSE(whole.has_value());
  EXPECT_THAT(
      whole.error().message,
      AllOf(HasSubstr("it has 16 files"), HasSubstr("/out/j/checkpoints/attempt-2/zero_to_fp32.py"),
            HasSubstr("--tag global_step40")));
  ask_.checkpoint.shards = 1;  // without ZeRO and without model parallelism
  EXPECT_EQ(planned().size(), 1U);
  EXPECT_TRUE(is_whole(before_, ask_.checkpoint).value());
}

TEST_F(Reshard, what_cannot_be_is_refused) {
  of("mindformers", {});
  nodes(1);
  ask_.after.mutable_launch()->set_script("run_qwen.py");
  EXPECT_THAT(refused(),
              AllOf(HasSubstr("run_mindformer.py"), HasSubstr("write the stages yourself")));
  ask_.after.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  EXPECT_THAT(refused(), HasSubstr("launch.per: node"));
  ask_.after.mutable_resume()->set_enabled(false);
  EXPECT_THAT(refused(), HasSubstr("--set resume=auto"));
}

TEST_F(Reshard, a_stage_takes_what_it_had_of_the_others_with_it) {
  of("mindformers", {"--train_dataset_dir", "${stages.prepare.out}/data"});
  v1::StageSpec& stage = *before_.mutable_stage();
  stage.set_chain_name("exp");
  stage.set_name("train");
  v1::StageDir& dir = *resolved_.mutable_stage()->add_dirs();
  dir.set_stage("prepare");
  dir.set_out("/out/p");
  v1::InputSpec& input = *before_.add_inputs();
  input.set_name("data");
  input.set_from("stage:prepare/data");
  (*resolved_.mutable_inputs())["data"] = "/out/p/data";
  ask_as_before();
  const auto specs = planned();
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_EQ(specs[0].launch().args(1), "/out/p/data");
  EXPECT_EQ(specs[0].inputs(0).from(), "/out/p/data");
  EXPECT_FALSE(specs[0].has_stage());
}

TEST_F(Reshard, what_the_job_began_with_is_as_after_a_failure) {
  of("torch", {"--init", "${start.dir}", "$${start.dir}", "$$${start.dir}x"});
  (*before_.mutable_runtime()->mutable_env())["INIT"] = "${start.dir}/a";
  before_.mutable_start()->set_from("job:base");
  before_.mutable_start()->set_as(v1::START_AS_WEIGHTS);
  ask_as_before();
  const auto specs = planned();
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_THAT(words(specs[0].launch().args(), 0),
              ElementsAre("--init", "", "$${start.dir}", "$$x"));
  EXPECT_EQ(specs[0].runtime().env().at("INIT"), "/a");
  EXPECT_EQ(specs[0].start().as(), v1::START_AS_RESUME);
}

TEST_F(Reshard, the_transform_has_the_inputs_that_the_runtime_names) {
  of("mindformers", {});
  (*before_.mutable_runtime()->mutable_env())["CORPUS"] = "${inputs.data}";
  v1::InputSpec& input = *before_.add_inputs();
  input.set_name("data");
  input.set_from("/data/wiki");
  ask_.after = before_;
  nodes(1);
  EXPECT_EQ(planned()[1].inputs(0).from(), "/data/wiki");
  EXPECT_EQ(plan_whole(ask_, "a")->jobs[0].inputs(0).from(), "/data/wiki");
}

// Regression: each fetched what nobody read there.
TEST_F(Reshard, what_is_in_a_store_is_fetched_only_where_it_is_read) {
  of("mindformers", {});
  before_.mutable_start()->set_from("obs://bkt/base");
  for (const auto& [name, from] :
       {std::pair{"start", "obs://bkt/base"}, {"data", "obs://bkt/wiki"}}) {
    v1::InputSpec& input = *before_.add_inputs();
    input.set_name(name);
    input.set_from(from);
    (*resolved_.mutable_inputs())[name] = std::string("/inputs/jobs/old/") + name;
  }
  ask_as_before();
  nodes(1);
  const auto specs = planned();
  ASSERT_EQ(specs.size(), 3U);
  for (const v1::JobSpec& spec : specs)
    for (const v1::InputSpec& input : spec.inputs()) {
      EXPECT_EQ(input.name(), "data") << "it starts from the job, and not from the URL";
      EXPECT_EQ(input.from(), "obs://bkt/wiki") << "no path of another job's tree";
    }
  EXPECT_EQ(specs[0].inputs_size(), 1);
  EXPECT_EQ(specs[1].inputs_size(), 0) << "the transform reads no data";
}

TEST_F(Reshard, a_whole_file) {
  of("mindformers", {});
  ask_.name = "tiny-whole2";
  const auto planned = plan_whole(ask_, "tiny-step40.ckpt");
  ASSERT_TRUE(planned.has_value());
  const v1::JobSpec& spec = planned->jobs[0];
  EXPECT_EQ(spec.name(), "tiny-whole2");
  EXPECT_THAT(words(spec.launch().run(), 5),
              ElementsAre("/out/j/checkpoints/attempt-2/strategy", "", "1",
                          "${out}/tiny-step40.ckpt", "file"));
  EXPECT_EQ(spec.success().file(), "tiny-step40.ckpt");
  EXPECT_EQ(plan_whole(ask_, "/data/$x/a.ckpt")->jobs[0].launch().run(8), "/data/$$x/a.ckpt");
  of("megatron", {});
  EXPECT_FALSE(plan_whole(ask_, "a").has_value());
}

// --- launch.mode: strategy -----------------------------------------------------------------------

TEST(Strategy, compiles_and_ends) {
  v1::JobSpec spec = spec_of("mindformers", {});
  spec.mutable_launch()->set_config("a.yaml");
  spec.mutable_launch()->set_mode(v1::LAUNCH_MODE_STRATEGY);
  spec.mutable_success()->set_rank_file("${save.dir}/strategy/ckpt_strategy_rank_${rank}.ckpt");
  EXPECT_EQ(problem_text(spec), "");
  const LaunchRequest request = request_of(spec);
  const auto plan = plan_launch(request);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const std::vector<std::string>& argv = plan->ranks[3].argv;
  for (const auto& [name, value] :
       {std::pair{"--run_mode", "train"}, std::pair{"--only_save_strategy", "True"}}) {
    const auto at = std::ranges::find(argv, name);
    ASSERT_TRUE(at != argv.end() && at + 1 != argv.end()) << name;
    EXPECT_EQ(*(at + 1), value);
  }
  EXPECT_EQ(plan->ranks[3].success_file, request.save_dir + "/strategy/ckpt_strategy_rank_3.ckpt");
  const v1::NodeLaunch second = node_launch(request, *plan, 1);
  ASSERT_EQ(second.ranks_size(), 2);
  EXPECT_EQ(second.ranks(0).success_file(),
            request.save_dir + "/strategy/ckpt_strategy_rank_2.ckpt");
  EXPECT_EQ(second.watching().success_file(), "");
}

TEST(Strategy, needs_ranks_to_be_split_over_and_muster_to_start_them) {
  v1::JobSpec spec = spec_of("mindformers", {}, 1, 1);
  spec.mutable_launch()->set_config("a.yaml");
  spec.mutable_launch()->set_mode(v1::LAUNCH_MODE_STRATEGY);
  EXPECT_THAT(problem_text(spec), HasSubstr("launch.mode: strategy with one rank"));
  spec.mutable_resources()->set_devices(8);
  EXPECT_EQ(problem_text(spec), "");
  spec.mutable_launch()->add_args("--run_mode=finetune");
  EXPECT_EQ(problem_text(spec), "");
  spec.mutable_launch()->set_args(0, "--run_mode=eval");
  EXPECT_THAT(problem_text(spec), HasSubstr("is not launch.mode"));
}

}  // namespace
}  // namespace muster::engine
