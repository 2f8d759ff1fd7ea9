// Which program a rank execs, and which environment it finds. A user who activates a virtual environment expects its python3, and got the system's;
// a node without any Python must say so before a rank starts.
#include "agent/host/launch_record.h"

#include "tests/unit/agent_host/support.h"

namespace muster::agent {
namespace {

class LaunchRecordTest : public ::testing::Test {
 protected:
  // An interpreter that is none: only its place matters.
  std::filesystem::path interpreter(const std::string& name) const {
    const auto path = dir_.write(name, "#!/bin/sh\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all | std::filesystem::perms::group_exec | std::filesystem::perms::others_exec);
    return path;
  }
  [[nodiscard]] v1::NodeLaunch python_launch(const std::string& python = std::string(engine::kPythonAuto)) const {
    v1::NodeLaunch launch = shell_launch(dir_.path(), "", 2);
    for (auto& rank : *launch.mutable_ranks()) {
      rank.clear_argv();
      for (const char* word : {"", "-u", "train.py"}) rank.add_argv(word);
      rank.set_argv(0, python);
    }
    return launch;
  }
  Result<rundir::v1::Launch> make(const v1::NodeLaunch& order, const std::string& agent_path) const {
    const rundir::RunLayout layout(dir_.path() / "run");
    LaunchContext context{
        .run = kRun, .node = kNode, .boot = BootId("boot"), .cookie = run_cookie(), .user = *find_user(""), .path = agent_path, .layout = &layout};
    context.python_system = (dir_.path() / "system/python3").string();
    return make_launch(order, context);
  }
  [[nodiscard]] std::string in(const std::string& name) const { return (dir_.path() / name).string(); }

  TempDir dir_;
};

TEST_F(LaunchRecordTest, PythonAutoIsTheFirstOnTheAgentsPath) {
  interpreter("system/python3");
  const auto venv = interpreter("venv/bin/python3");
  interpreter("later/python3");
  const auto made = make(python_launch(), "/nowhere:" + in("venv/bin") + ":" + in("later"));
  ASSERT_TRUE(made) << made.error().message;
  for (const auto& rank : made->ranks()) EXPECT_EQ(rank.argv(0), venv.string());
}

// A virtual environment's python3 is a link to the system's: Python finds the environment by the name that it was called with.
TEST_F(LaunchRecordTest, AVirtualEnvironmentsLinkIsNotFollowed) {
  interpreter("system/python3");
  std::filesystem::create_directories(dir_.path() / "venv/bin");
  std::filesystem::create_symlink(dir_.path() / "system/python3", dir_.path() / "venv/bin/python3");
  const auto made = make(python_launch(), in("venv/bin"));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->ranks(0).argv(0), in("venv/bin/python3"));
}

TEST_F(LaunchRecordTest, TheJobsOwnPathWinsOverTheAgentsAndARanksOverBoth) {
  interpreter("agent/python3");
  const auto job = interpreter("job/python3"), rank = interpreter("rank/python3");
  v1::NodeLaunch order = python_launch();
  (*order.mutable_env())["PATH"] = in("job");
  (*order.mutable_ranks(1)->mutable_env())["PATH"] = in("rank");
  const auto made = make(order, in("agent"));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->ranks(0).argv(0), job.string());
  EXPECT_EQ(made->ranks(1).argv(0), rank.string());
}

TEST_F(LaunchRecordTest, WithoutOneOnPathItIsTheSystems) {
  const auto system = interpreter("system/python3");
  dir_.write("venv/bin/python3", "not executable");
  const auto made = make(python_launch(), in("venv/bin"));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->ranks(0).argv(0), system.string());
}

TEST_F(LaunchRecordTest, NoPythonAtAllIsASentence) {
  const auto made = make(python_launch(), "/nowhere");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(made.error().message, "starting rank 0: executing 'python3': there is no 'python3' on PATH '/nowhere', and no '" + in("system/python3") +
                                      "' either; install Python on this node, or name one with runtime.python");
}

TEST_F(LaunchRecordTest, APythonThatWasNamedIsTakenAsItIs) {
  interpreter("system/python3");
  const auto named = interpreter("named/python3.9");
  const auto made = make(python_launch(named.string()), "/nowhere");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->ranks(0).argv(0), named.string());
  EXPECT_FALSE(make(python_launch("python3.9"), "/nowhere")) << "a name that was asked for is not replaced by another";
}

TEST_F(LaunchRecordTest, RanksHaveThePathOfTheAgentOrADefault) {
  interpreter("bin/python3");
  const auto path_of = [](const rundir::v1::Launch& launch) {
    for (const std::string& variable : launch.env()) {
      if (variable.starts_with("PATH=")) return variable.substr(5);
    }
    return std::string("(unset)");
  };
  EXPECT_EQ(path_of(*make(python_launch(), in("bin"))), in("bin"));
  interpreter("system/python3");
  EXPECT_EQ(path_of(*make(python_launch(), "")), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

// An agent of root's has directories on its PATH that root alone may enter; a rank of another user would only meet that at its exec.
TEST_F(LaunchRecordTest, WhatAnotherUserMayNotExecuteIsPassedOver) {
  const UserEntry other{.name = "other", .home = "/", .uid = 54'321, .gid = 54'321, .groups = {54'322}};
  std::filesystem::permissions(dir_.path(), static_cast<std::filesystem::perms>(0755));
  interpreter("locked/python3");
  std::filesystem::permissions(dir_.path() / "locked", static_cast<std::filesystem::perms>(0700));
  const auto own = interpreter("own/python3");
  std::filesystem::permissions(own, static_cast<std::filesystem::perms>(0700));
  const auto open = interpreter("open/python3");
  const std::string path = in("locked") + ":" + in("own") + ":" + in("open");
  EXPECT_EQ(resolve_program("python3", path, "/", &other).value(), open.string());
  EXPECT_EQ(resolve_program("python3", path, "/").value(), in("locked/python3")) << "the agent's own user may";
  // Behind a link, the way to the target counts.
  std::filesystem::create_directories(dir_.path() / "linked");
  std::filesystem::create_symlink(dir_.path() / "locked/python3", dir_.path() / "linked/python3");
  const auto refused = resolve_program("python3", in("linked"), "/", &other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "'python3' on PATH '" + in("linked") + "' is not an executable file for user 'other'");
}

}  // namespace
}  // namespace muster::agent
