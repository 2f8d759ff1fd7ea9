// Files that must exist on the node: what is missing is reported before anything starts, and so is
// a value that a file must not have.
#include "agent/code/needed_files.h"

#include "agent/start/launch_files.h"
#include "agent/start/start_checks.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class NeededFiles : public ::testing::Test {
 protected:
  NeededFiles() : run_(dir_.path() / "run") {
    EXPECT_TRUE(rundir::make_run(run_));
    fs::create_directories(dir_.path() / "out");
    order_.add_make_dirs((dir_.path() / "out").string());
    dir_.write("code/configs/llama2/pretrain_llama2_7b.yaml", "runner_config:\n  epochs: 2\n");
    dir_.write("code/run.sh", "#!/bin/bash\necho 1\n");
  }
  [[nodiscard]] std::string code(const std::string& name) const {
    return (dir_.path() / "code" / name).string();
  }
  [[nodiscard]] std::string out(const std::string& name) const {
    return (dir_.path() / "out" / name).string();
  }
  v1::NeededFile& need(const std::string& key, const std::string& source) {
    v1::NeededFile& file = *order_.add_needed();
    file.set_source(source);
    file.set_key(key);
    return file;
  }
  static void refuse(v1::NeededFile& file, const std::string& at, bool value) {
    v1::RefusedValue& refused = *file.add_refused();
    refused.set_at(at);
    refused.set_value(value);
    refused.set_because("because; and what helps");
  }
  void copy(const std::string& source, const std::string& at, const std::string& value) {
    v1::PatchedFile& file = *order_.add_patched();
    file.set_source(source);
    file.set_path(out("a.yaml"));
    v1::PatchItem& item = *file.add_items();
    item.set_at(at);
    item.set_value(value);
  }
  Result<void> write() { return write_launch_files(order_, run_, nullptr); }
  std::pair<v1::StartFailure, std::string> refusal() {
    const auto written = write();
    EXPECT_FALSE(written);
    if (written) return {};
    return {failure_of(written.error()), written.error().message};
  }

  TempDir dir_;
  rundir::RunLayout run_;
  v1::NodeLaunch order_;
};

TEST_F(NeededFiles, WhatIsMissingIsReportedWithTheNearestName) {
  need("launch.config", code("configs/llama2/pretrain_llama2_7b.yaml"));
  EXPECT_TRUE(write());
  need("launch.config", code("configs/lama2/pretrain_llama2_7b.yaml"));
  const auto [why, text] = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "launch.config: '" + code("configs/lama2/pretrain_llama2_7b.yaml") +
                      "' is not there on this node; nearest: '" +
                      code("configs/llama2/pretrain_llama2_7b.yaml") + "'");
  EXPECT_TRUE(fs::is_empty(dir_.path() / "out"));

  order_.clear_needed();
  need("launch.config", "/nowhere/at/all.yaml");
  EXPECT_EQ(refusal().second,
            "launch.config: '/nowhere/at/all.yaml' is not there on this node; name one that is, or "
            "put it on a file system that every node sees");

  // Below a copy of the code, messages name the files of the code, because nobody knows the path of
  // the copy.
  order_.clear_needed();
  order_.mutable_code()->set_source("/srv/gpt");
  order_.mutable_code()->set_path(code("configs"));
  need("launch.config", code("configs/lama2/pretrain_llama2_7b.yaml"));
  EXPECT_EQ(refusal().second,
            "launch.config: 'lama2/pretrain_llama2_7b.yaml' is not in the code '/srv/gpt' with its "
            "patches; nearest: 'llama2/pretrain_llama2_7b.yaml'");
}

TEST_F(NeededFiles, APathThatLeadsNowhereIsTheJobsFault) {
  fs::create_symlink("loop", code("loop"));
  need("launch.script", code("loop/run.sh"));
  auto [why, text] = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "reading launch.script: '" + code("loop/run.sh") +
                      "': Too many levels of symbolic links");
  order_.clear_needed();
  need("launch.script", "run.sh");
  std::tie(why, text) = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "reading 'run.sh': it is not an absolute path");
}

// setup: ["cp pretrain_template.py pretrain.py"]: the name of the source is almost the same.
TEST_F(NeededFiles, ASetupMayProvideWhatIsMissing) {
  order_.mutable_setup()->add_commands("cp run.sh rn.sh");
  refuse(need("launch.config", code("configs/other/made.yaml")), "x", false);
  need("launch.script", code("rn.sh"));
  const auto written = write();
  EXPECT_TRUE(written) << written.error().message;
  // A file that is already there is checked.
  const std::string config = code("configs/llama2/pretrain_llama2_7b.yaml");
  dir_.write("code/configs/llama2/pretrain_llama2_7b.yaml", "x: False\n");
  refuse(need("launch.config", config), "x", false);
  EXPECT_EQ(refusal().second,
            "launch.config: '" + config + "': x is False: because; and what helps");
}

// Regression: an image may contain the code. A file that must only exist was reported as missing on
// the node, and no such job could start.
TEST_F(NeededFiles, WhatAnImageMayHaveIsNotMissedOnTheNode) {
  order_.mutable_container()->set_image("trainer:1");
  need("launch.script", "/opt/trainer/train.py");
  auto written = write();
  EXPECT_TRUE(written) << written.error().message;
  // A directory of the node that the container sees is checked.
  order_.mutable_container()->add_mounts()->set_source(code("configs"));
  need("launch.config", code("configs/lama2"));
  EXPECT_EQ(refusal().second, "launch.config: '" + code("configs/lama2") +
                                  "' is not there on this node; nearest: '" +
                                  code("configs/llama2") + "'");
}

// A file that is both the source of a copy and needed: the copy comes first, and the file itself is
// checked.
TEST_F(NeededFiles, OfACopiedFileTheFileItselfIsChecked) {
  const std::string config = code("configs/a.yaml");
  dir_.write("code/configs/a.yaml", "runner_config:\n  sink_mode: False\n");
  copy(config, "runer_config.epochs", "4");
  refuse(need("launch.config", config), "runner_config.sink_mode", false);
  EXPECT_EQ(refusal().second, "changing 'runer_config.epochs' of '" + config +
                                  "': there is no 'runer_config'; nearest: 'runner_config'")
      << "an error of the copy comes first";

  order_.clear_patched();
  copy(config, "runner_config.sink_mode", "True");
  const auto [why, text] = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "launch.config: '" + config +
                      "': runner_config.sink_mode is False: because; and what helps");
  EXPECT_EQ(read_text(out("a.yaml")), "runner_config:\n  sink_mode: True\n");

  fs::remove(config);
  const std::string missing = refusal().second;
  EXPECT_TRUE(missing.starts_with("launch.patch: '" + config + "' is not there")) << missing;
}

}  // namespace
}  // namespace muster::agent
