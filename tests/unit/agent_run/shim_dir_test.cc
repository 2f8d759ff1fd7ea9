// The launcher shim in a run directory: which names are in it, and what the script's environment
// has for them.
#include "agent/launch/shim_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "agent/launch/launch_record.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

class ShimDir : public testing::Test {
 protected:
  ShimDir() {
    std::string pattern = (fs::temp_directory_path() / "shim.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    layout_ = rundir::RunLayout(dir_ / "job.1");
    fs::create_directories(layout_.root());
    fs::create_directories(dir_ / "bin");
    for (const char* name : {"python3", "python3.11", "python3-config", "pythonw", "bash"})
      program(name);
    order_.mutable_script()->set_intercept(true);
    v1::RankProcess& script = *order_.add_ranks();
    script.set_rank(3);
    script.add_argv("bash");
    script.set_cwd("/");
  }
  ~ShimDir() override { fs::remove_all(dir_); }
  void program(const std::string& name) const {
    std::ofstream(dir_ / "bin" / name) << "#!/bin/sh\n";
    fs::permissions(dir_ / "bin" / name, fs::perms::owner_all);
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(layout_.shim_dir())) {
      EXPECT_EQ(fs::read_symlink(entry.path()), "/opt/muster/muster-worker");
      found.insert(entry.path().filename().string());
    }
    return found;
  }
  [[nodiscard]] Result<void> make() const {
    return make_shim_dir(layout_, "/opt/muster/muster-worker", order_,
                         (dir_ / "bin").string() + ":/nowhere");
  }

  fs::path dir_;
  rundir::RunLayout layout_{fs::path()};
  v1::NodeLaunch order_;
};

// A script may run `command -v python`: what does not exist without the shim must not exist with
// it.
TEST_F(ShimDir, HasTheLaunchersAndThePythonsThatAreThere) {
  ASSERT_TRUE(make());
  EXPECT_THAT(names(), ElementsAre("msrun", "python3", "python3.11", "torchrun"));
  std::error_code error;
  fs::remove(layout_.shim_dir() / "msrun", error);
  fs::create_symlink("/elsewhere", layout_.shim_dir() / "msrun");
  ASSERT_TRUE(make()) << "a start that was cut off is made again";
  EXPECT_THAT(names(), ElementsAre("msrun", "python3", "python3.11", "torchrun"));
}

TEST_F(ShimDir, WhatASetupWillHaveOnPathIsNotKnown) {
  order_.mutable_setup()->add_commands("source env.sh");
  ASSERT_TRUE(make());
  EXPECT_THAT(names(), ElementsAre("msrun", "python", "python3", "torchrun"));
}

TEST_F(ShimDir, WhatCannotBeMadeIsReported) {
  std::ofstream(layout_.shim_dir()) << "a file\n";
  const auto made = make();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("the launcher shim's"), std::string::npos)
      << made.error().message;
}

TEST_F(ShimDir, TheLaunchRecordKnowsTheScript) {
  ASSERT_TRUE(make());
  const LaunchContext context{.run = {JobId("job"), AttemptNo(1)},
                              .node = NodeName("n"),
                              .boot = BootId("b"),
                              .process_tag = "c",
                              .path = (dir_ / "bin").string(),
                              .layout = &layout_};
  auto launch = make_launch(order_, context);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_TRUE(launch->scripts());
  EXPECT_EQ(launch->shim_dir(), layout_.shim_dir().string());
  const std::set<std::string> variables(launch->env().begin(), launch->env().end());
  EXPECT_TRUE(variables.contains("MUSTER_SHIM_DIR=" + layout_.shim_dir().string()));
  EXPECT_TRUE(variables.contains("MUSTER_SHIM_NODE_LOG=" + layout_.rank_log(3).string()));
  EXPECT_TRUE(
      variables.contains("BASH_FUNC_torchrun%%=() {  [ \"$BASHPID\" = \"$$\" ] || local -x "
                         "MUSTER_SHIM_PARENT=\"$BASHPID\"\n \"$MUSTER_SHIM_DIR/torchrun\" "
                         "\"$@\"\n}"));
  // [ -x "$(command -v python3)" ] requires a path.
  EXPECT_FALSE(std::ranges::any_of(variables, [](const std::string& variable) {
    return variable.starts_with("BASH_FUNC_python");
  }));
  order_.mutable_script()->set_intercept(false);
  launch = make_launch(order_, context);
  ASSERT_TRUE(launch);
  EXPECT_TRUE(launch->scripts());
  EXPECT_TRUE(launch->shim_dir().empty());
  order_.clear_script();
  EXPECT_FALSE(make_launch(order_, context)->scripts());
}

}  // namespace
}  // namespace muster::agent
