// Copies of configurations and scripts with other values, and missing sources that are reported
// before anything starts.
#include "agent/code/patched_files.h"

#include <sys/stat.h>

#include "agent/launch/nearest_file.h"
#include "agent/start/launch_files.h"
#include "agent/start/start_checks.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class PatchedFiles : public ::testing::Test {
 protected:
  PatchedFiles() : run_(dir_.path() / "run") {
    EXPECT_TRUE(rundir::make_run(run_));
    fs::create_directories(dir_.path() / "out");
    order_.add_make_dirs((dir_.path() / "out").string());
    dir_.write("code/configs/llama2/pretrain_llama2_7b.yaml", "runner_config:\n  epochs: 2\n");
    dir_.write("code/run.sh", "#!/bin/bash\nNNODES=1\necho $NNODES\n");
  }
  [[nodiscard]] std::string code(const std::string& name) const {
    return (dir_.path() / "code" / name).string();
  }
  [[nodiscard]] std::string out(const std::string& name) const {
    return (dir_.path() / "out" / name).string();
  }
  v1::PatchedFile& patched(const std::string& source, const std::string& path) {
    v1::PatchedFile& file = *order_.add_patched();
    file.set_source(source);
    file.set_path(path);
    return file;
  }
  static void item(v1::PatchedFile& file, const std::string& at, const std::string& value) {
    v1::PatchItem& added = *file.add_items();
    added.set_at(at);
    added.set_value(value);
  }
  std::pair<v1::StartFailure, std::string> refusal() {
    const auto written = write_launch_files(order_, run_, nullptr);
    EXPECT_FALSE(written);
    if (written) return {};
    EXPECT_TRUE(fs::is_empty(dir_.path() / "out"));
    return {failure_of(written.error()), written.error().message};
  }

  TempDir dir_;
  rundir::RunLayout run_;
  v1::NodeLaunch order_;
};

TEST_F(PatchedFiles, AreMadeNextToTheirSourcesWhichStay) {
  v1::PatchedFile& config = patched(code("configs/llama2/pretrain_llama2_7b.yaml"), out("a.yaml"));
  item(config, "runner_config.epochs", "4");
  item(config, "runner_config.sink_mode", "True");
  (*patched(code("run.sh"), out("run.sh")).mutable_vars())["NNODES"] = "2 or 3";
  fs::permissions(code("run.sh"), static_cast<fs::perms>(0750));
  const auto written = write_launch_files(order_, run_, nullptr);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(read_text(out("a.yaml")), "runner_config:\n  epochs: 4\n  sink_mode: True\n");
  EXPECT_EQ(read_text(out("run.sh")), "#!/bin/bash\nNNODES='2 or 3'\necho $NNODES\n");
  EXPECT_EQ(fs::status(out("run.sh")).permissions(), static_cast<fs::perms>(0750))
      << "a script may be run";
  EXPECT_EQ(read_text(code("configs/llama2/pretrain_llama2_7b.yaml")),
            "runner_config:\n  epochs: 2\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path() / "out"), {}), 2);
}

TEST_F(PatchedFiles, WhatCannotBeChangedIsTheJobsFault) {
  item(patched(code("configs/llama2/pretrain_llama2_7b.yaml"), out("a.yaml")),
       "runer_config.epochs", "4");
  auto [why, text] = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "changing 'runer_config.epochs' of '" +
                      code("configs/llama2/pretrain_llama2_7b.yaml") +
                      "': there is no 'runer_config'; nearest: 'runner_config'");

  order_.clear_patched();
  (*patched(code("run.sh"), out("run.sh")).mutable_vars())["NODES"] = "2";
  std::tie(why, text) = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "replacing 'NODES=' in '" + code("run.sh") +
                      "': nothing in it assigns that; nearest: 'NNODES'");
}

TEST_F(PatchedFiles, WhatIsMissingIsReportedWithTheNearestName) {
  item(patched(code("configs/llama2/pretran.yaml"), out("a.yaml")), "a", "1");
  const auto [why, text] = refusal();
  EXPECT_EQ(why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(text, "launch.patch: '" + code("configs/llama2/pretran.yaml") +
                      "' is not there on this node; nearest: '" +
                      code("configs/llama2/pretrain_llama2_7b.yaml") + "'");

  order_.clear_patched();
  (*patched(code("rn.sh"), out("run.sh")).mutable_vars())["NNODES"] = "2";
  EXPECT_EQ(refusal().second, "launch.vars: '" + code("rn.sh") +
                                  "' is not there on this node; nearest: '" + code("run.sh") + "'");

  // The image of a container may have the file, but the agent cannot read it.
  order_.mutable_container()->set_image("trainer:1");
  EXPECT_EQ(refusal().second, "launch.vars: '" + code("rn.sh") +
                                  "' is not there on this node; nearest: '" + code("run.sh") +
                                  "'; what only an image has cannot be changed");
}

// A file to be changed is read before the setup runs.
TEST_F(PatchedFiles, ASetupDoesNotProvideASource) {
  order_.mutable_setup()->add_commands("cp run.sh rn.sh");
  item(patched(code("configs/lama2/pretrain_llama2_7b.yaml"), out("a.yaml")), "a", "1");
  EXPECT_EQ(refusal().second, "launch.patch: '" + code("configs/lama2/pretrain_llama2_7b.yaml") +
                                  "' is not there on this node; nearest: '" +
                                  code("configs/llama2/pretrain_llama2_7b.yaml") + "'");
}

TEST_F(PatchedFiles, SourcesThatAreNoFilesHoldNothingUp) {
  ASSERT_EQ(::mkfifo(out("pipe.yaml").c_str(), 0600), 0);
  const v1::PatchedFile& pipe = patched(out("pipe.yaml"), out("a.yaml"));
  EXPECT_EQ(patched_file(order_, pipe).error().message,
            "reading launch.patch: '" + out("pipe.yaml") + "': it is not a file");
  EXPECT_EQ(patched_file(order_, patched(code("configs"), out("a.yaml"))).error().code,
            ErrorCode::InvalidArgument);
  EXPECT_EQ(patched_file(order_, patched("relative.yaml", out("a.yaml"))).error().code,
            ErrorCode::InvalidArgument);
  dir_.write("code/big.yaml", std::string((4U << 20U) + 1, '#'));
  EXPECT_EQ(patched_file(order_, patched(code("big.yaml"), out("a.yaml"))).error().message,
            "reading launch.patch: '" + code("big.yaml") + "': it has more than 4 MiB");
}

TEST_F(PatchedFiles, AreWrittenWhereTheOrderMakesDirectoriesAlone) {
  item(patched(code("configs/llama2/pretrain_llama2_7b.yaml"),
               (dir_.path() / "else/a.yaml").string()),
       "a", "1");
  EXPECT_NE(refusal().second.find("its directory is none that the order has made"),
            std::string::npos);
}

// The script that is run is still to be made.
TEST_F(PatchedFiles, ACopiedScriptIsNotMissed) {
  v1::RankProcess& rank = *order_.add_ranks();
  rank.set_cwd("/");
  rank.add_argv("bash");
  rank.add_argv(out("run.sh"));
  EXPECT_TRUE(check_files(order_));
  patched(code("run.sh"), out("run.sh"));
  EXPECT_FALSE(check_files(order_));
}

TEST(NearestFile, OfTheNamesInADirectory) {
  const std::vector<std::string> names = {"pretrain_llama2_7b.yaml", "pretrain_llama2_7b.sh",
                                          "finetune.yaml", "run.sh", "a.json"};
  EXPECT_EQ(nearest_name("finetun.yaml", names), "finetune.yaml");
  EXPECT_EQ(nearest_name("pretran.yaml", names), "pretrain_llama2_7b.yaml")
      << "begins alike, ends alike";
  EXPECT_EQ(nearest_name("pretrain.sh", names), "pretrain_llama2_7b.sh");
  EXPECT_EQ(nearest_name("other.yaml", names), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

}  // namespace
}  // namespace muster::agent
