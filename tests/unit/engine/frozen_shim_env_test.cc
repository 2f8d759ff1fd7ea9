// What the controller passes to a node's launcher shim (common/engine/node/node_script.cc), version
// 1, is frozen: the shim may be of an older release. Folders of tests/dumps/rundir have it as
// shim.env; tests/unit/shim/frozen_shim_env_test.cc reads it.
#include <gtest/gtest.h>

#include "common/compat/arguments/edits.h"
#include "common/engine/model/engine.h"
#include "tests/support/dumps.h"
#include "tests/support/env_text.h"

namespace muster::engine {
namespace {

const test::DumpFiles kShimEnvironment = {"shim.env"};

// One of every kind.
ArgumentEdits every_edit() {
  using Kind = ArgumentEdit::Kind;
  return {{.kind = Kind::OnlyWith, .options = {"--save", "--load"}},
          {.kind = Kind::OnlyScript, .value = "train.py"},
          {.kind = Kind::Saves, .option = "--save", .value = "--no-save-optim"},
          {.kind = Kind::Loads, .option = "--load"},
          {.kind = Kind::Set, .option = "--save", .value = "/out/ckpt"},
          {.kind = Kind::Put, .option = "--seed", .value = "7"},
          {.kind = Kind::Drop, .option = "--finetune"},
          {.kind = Kind::DropValue, .option = "--exit-interval"},
          {.kind = Kind::Match, .option = "--use-checkpoint-args", .value = "--load"}};
}

// The second of two nodes with two devices each.
test::EnvironmentText shim_environment_today() {
  v1::JobSpec spec;
  spec.set_name("tutorial");
  spec.set_engine("megatron");
  spec.mutable_code()->set_at("/home/ada/exp");
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  spec.mutable_launch()->set_intercept(true);
  for (const char* word : {"bash", "run.sh"}) spec.mutable_launch()->add_run(word);
  spec.mutable_resources()->set_nodes(2);
  spec.mutable_resources()->set_devices(2);
  spec.mutable_recovery()->set_max_restarts(7);
  spec.mutable_recovery()->mutable_stop_grace()->set_seconds(3);
  LaunchRequest request{
      .spec = &spec, .job_id = "01j8x4a0b7c2d", .attempt = 3, .master_port = 29500};
  for (const std::uint32_t node : {0U, 1U})
    request.nodes.push_back({.node = NodeName("n" + std::to_string(node)),
                             .address = "10.0.0." + std::to_string(node + 1),
                             .devices = {4 * node, 4 * node + 1},
                             .first_rank = RankNo(node),
                             .rank_count = 1,
                             .device_type = "nvidia",
                             .interface = "eth0"});
  request.out_dir = out_dir(spec, request.job_id, "/out");
  request.save_dir = save_dir(spec, request.out_dir, request.attempt);
  request.saved = {{.named_dir = "/home/ada/exp/ckpt",
                    .job = JobId("01j8x4a0b7c2c"),
                    .path = "/out/j1/ckpt/iter_0000020",
                    .step = 20},
                   {.named_dir = "/home/ada/exp/none", .job = JobId("01j8x4a0b7c2b")}};
  const auto plan = plan_launch(request);
  if (!plan) throw std::runtime_error(plan.error().message);
  test::EnvironmentText variables;
  for (const auto& [name, value] : plan->ranks.at(1).env)
    if (name.starts_with("MUSTER_")) variables[name] = value.text;
  variables["MUSTER_SHIM_EDITS"] = json_of(every_edit());
  return variables;
}

TEST(FrozenShimEnvironment, IsWrittenAsItWas) {
  const test::EnvironmentText today = shim_environment_today();
  auto found = test::dumps_with("rundir", kShimEnvironment);
  std::string missing;
  for (const auto& [name, value] : today) {
    const bool known = std::ranges::any_of(found, [&name](const auto& dump) {
      return test::environment_of(test::read_dump(dump / "shim.env")).contains(name);
    });
    if (!known) missing += name + " ";
  }
  if (!missing.empty() && test::writes_dumps()) {
    found.push_back(test::next_dump("rundir", kShimEnvironment));
    test::write_dump_file(found.back() / "shim.env", test::env_text(today));
    missing.clear();
  }
  EXPECT_EQ(missing, "") << "no shim.env has these; run: " << test::how_to_write("unit_engine");
  for (const auto& dump : found)
    EXPECT_EQ(test::env_lost(test::read_dump(dump / "shim.env"), today), "")
        << "an older shim misses this, or reads another value: " << dump;
}

TEST(FrozenShimEnvironment, IsReadAsItWasWritten) {
  const test::EnvironmentText today = shim_environment_today();
  EXPECT_EQ(test::environment_of(test::env_text(today)), today);
  test::EnvironmentText other = today;
  other.erase("MUSTER_SHIM_LOGS");
  other["MUSTER_SHIM_GRACE_MS"] = "3s";
  EXPECT_EQ(test::env_lost(test::env_text(today), other),
            "MUSTER_SHIM_GRACE_MS=3000\nMUSTER_SHIM_LOGS=" + today.at("MUSTER_SHIM_LOGS") + "\n");
}

}  // namespace
}  // namespace muster::engine
