// The environment of the launcher shim, version 1, is understood for ever: a controller or an agent
// of an older release may have written it. Folders of tests/dumps/rundir have its variables
// (shim.env: tests/unit/engine/frozen_shim_env_test.cc), and shim.txt: the launch that the shim
// must make of them.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/dumps.h"
#include "tests/support/env_text.h"
#include "worker/shim/earlier.h"
#include "worker/shim/edits.h"
#include "worker/shim/place.h"

namespace muster::shim {
namespace {

// A program with every option that the frozen edits change.
std::string launch_text(const Environment& environment) {
  const std::vector<std::string> words = {
      "--nnodes", "9",          "train.py",        "--save", "./ckpt",         "--load",
      "./ckpt",   "--finetune", "--exit-interval", "5",      "--no-save-optim"};
  const auto call = parse_call(Launcher::Torchrun, words);
  if (!call) throw std::runtime_error(call.error().message);
  const auto place = read_place(environment);
  if (!place) throw std::runtime_error("the shim reads no place in shim.env");
  const auto edits = parse_edits(value_of(environment, "MUSTER_SHIM_EDITS"));
  if (!edits) throw std::runtime_error(edits.error().message);
  std::string text = "grace " + std::to_string(place->grace_ms) + "\n";
  const ScriptOptions given = script_options(*edits, call->program);
  text += "saves " + given.save + " loads " + given.load + " alone " +
          std::to_string(static_cast<int>(given.weights_alone)) + "\n";
  for (const char* dir : {"/home/ada/exp/ckpt", "/home/ada/exp/none", "/home/ada/exp"}) {
    const Earlier earlier = saved_in(value_of(environment, "MUSTER_SHIM_SAVED"), dir);
    text += std::string("earlier ") + dir + " '" + earlier.job + "'";
    for (const auto& one : earlier.checkpoints)
      text += " " + std::to_string(one.step) + ":" + one.path;
    text += "\n";
  }
  for (const Process& process :
       plan_processes(*call, *place, environment, *edits, {.path = "/usr/bin/python3"})) {
    text += "process " + process.name + " log " + process.log + "\nargv";
    for (const std::string& word : process.argv) text += " " + word;
    text += "\n";
    for (const auto& [name, value] : process.environment)
      text += "env " + name + "=" + value + "\n";
  }
  return text;
}

TEST(FrozenShimEnvironment, IsUnderstoodAsItWas) {
  // unit_engine writes shim.env, and then this test writes shim.txt.
  const auto found = test::dumps_with("rundir", {"shim.env"});
  ASSERT_FALSE(found.empty()) << "run: " << test::how_to_write("unit_engine") << " first";
  for (const auto& dump : found) {
    SCOPED_TRACE(dump.native());
    const std::string today = launch_text(test::environment_of(test::read_dump(dump / "shim.env")));
    if (!std::filesystem::exists(dump / "shim.txt")) {
      ASSERT_TRUE(test::writes_dumps()) << "run: " << test::how_to_write("unit_shim");
      test::write_dump_file(dump / "shim.txt", today);
    }
    EXPECT_EQ(test::first_line_lost(test::read_dump(dump / "shim.txt"), today), "");
  }
}

}  // namespace
}  // namespace muster::shim
