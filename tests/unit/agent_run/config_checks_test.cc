// What a configuration on the node must not contain: the keys are checked in the file and in the
// files that it is based on, before anything starts.
#include "agent/code/config_checks.h"

#include "agent/code/needed_files.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

class ConfigChecks : public ::testing::Test {
 protected:
  [[nodiscard]] v1::NeededFile needed() const {
    v1::NeededFile file;
    file.set_source((dir_.path() / "a.yaml").string());
    file.set_key("launch.config");
    return file;
  }
  static void refuse(v1::NeededFile& file, const std::string& at, bool value) {
    v1::RefusedValue& refused = *file.add_refused();
    refused.set_at(at);
    refused.set_value(value);
    refused.set_because("because; and what helps");
  }
  [[nodiscard]] std::string refusal() const {
    v1::NeededFile file = needed();
    refuse(file, "runner_config.sink_mode", false);
    const auto outcome = check_needed_file({}, file);
    if (outcome) return "";
    EXPECT_EQ(outcome.error().code, ErrorCode::InvalidArgument);
    return outcome.error().message;
  }
  [[nodiscard]] std::string expected(const std::string& file,
                                     const std::string& word = "False") const {
    return "launch.config: '" + (dir_.path() / file).string() + "': runner_config.sink_mode is " +
           word + ": because; and what helps";
  }

  TempDir dir_;
};

TEST_F(ConfigChecks, NamesFileKeyAndRemedy) {
  dir_.write("a.yaml", "runner_config:\n  epochs: 2\n  sink_mode: False # slow\n");
  EXPECT_EQ(refusal(), expected("a.yaml"));
  dir_.write("a.yaml", "runner_config: {sink_mode: no}\n");
  EXPECT_EQ(refusal(), expected("a.yaml", "no"));
  for (const char* well : {"runner_config: {sink_mode: True}\n", "runner_config: {epochs: 2}\n",
                           "epochs: 1\n", "runner_config: {sink_mode: \"False\"}\n", ""}) {
    dir_.write("a.yaml", well);
    EXPECT_EQ(refusal(), "") << well;
  }
}

TEST_F(ConfigChecks, ReadsWhatItIsBasedOn) {
  dir_.write("a.yaml", "base_config: base/one.yaml\nrunner_config: {epochs: 2}\n");
  dir_.write("base/one.yaml", "runner_config: {sink_mode: False}\n");
  EXPECT_EQ(refusal(), expected("base/one.yaml"));
  dir_.write("a.yaml", "base_config: ['base/one.yaml', base/two.yaml]\n");
  dir_.write("base/two.yaml", "runner_config: {sink_mode: True}\n");
  EXPECT_EQ(refusal(), "") << "the later one counts";
  dir_.write("base/two.yaml", "runner_config: {epochs: 3}\n");
  EXPECT_EQ(refusal(), "") << "of a later one's map nothing of an earlier one's is left";
  dir_.write("base/two.yaml", "base_config: ../a.yaml\n");  // a cycle
  EXPECT_EQ(refusal(), expected("base/one.yaml"));
  dir_.write("a.yaml", "base_config: base/one.yaml\nrunner_config: {sink_mode: True}\n");
  EXPECT_EQ(refusal(), "") << "its own counts";
}

TEST_F(ConfigChecks, WhatCannotBeReadIsTheEnginesToSay) {
  dir_.write("a.yaml", "runner_config: [\n");
  EXPECT_EQ(refusal(), "");
  dir_.write("a.yaml", "base_config: gone.yaml\n");
  EXPECT_EQ(refusal(), "");
}

TEST_F(ConfigChecks, EachRefusedValueIsChecked) {
  dir_.write("a.yaml", "x: False\ny: on\n");
  v1::NeededFile file = needed();
  EXPECT_EQ(config_refusal(file), std::nullopt);
  refuse(file, "x", true);
  refuse(file, "y", false);
  EXPECT_EQ(config_refusal(file), std::nullopt);
  refuse(file, "x[", false);
  EXPECT_EQ(config_refusal(file), std::nullopt) << "a path of a later release is left alone";
  refuse(file, "y", true);
  refuse(file, "x", false);
  EXPECT_EQ(config_refusal(file), "launch.config: '" + (dir_.path() / "a.yaml").string() +
                                      "': y is on: because; and what helps");
}

}  // namespace
}  // namespace muster::agent
