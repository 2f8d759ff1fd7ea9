// Which program a rank execs, and which environment it finds. Regression: a user who activates a
// virtual environment expects its python3, and got the system's. A node without any Python must
// report this before a rank starts.
#include "agent/launch/launch_record.h"

#include <algorithm>

#include "agent/launch/plog_dirs.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

class LaunchRecordTest : public ::testing::Test {
 protected:
  // A file that is no real interpreter: only its path matters.
  std::filesystem::path interpreter(const std::string& name) const {
    const auto path = dir_.write(name, "#!/bin/sh\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all |
                                           std::filesystem::perms::group_exec |
                                           std::filesystem::perms::others_exec);
    return path;
  }
  [[nodiscard]] v1::NodeLaunch python_launch(
      const std::string& python = std::string(engine::kPythonAuto)) const {
    v1::NodeLaunch launch = shell_launch(dir_.path(), "", 2);
    for (auto& rank : *launch.mutable_ranks()) {
      rank.clear_argv();
      for (const char* word : {"", "-u", "train.py"}) rank.add_argv(word);
      rank.set_argv(0, python);
    }
    return launch;
  }
  Result<rundir::v1::Launch> make(const v1::NodeLaunch& order,
                                  const std::string& agent_path) const {
    const rundir::RunLayout layout(dir_.path() / "run");
    LaunchContext context{.run = kRun,
                          .node = kNode,
                          .boot = BootId("boot"),
                          .process_tag = run_process_tag(),
                          .user = *find_user(""),
                          .path = agent_path,
                          .layout = &layout};
    context.python_system = (dir_.path() / "system/python3").string();
    return make_launch(order, context);
  }
  [[nodiscard]] std::string in(const std::string& name) const {
    return (dir_.path() / name).string();
  }

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

TEST_F(LaunchRecordTest, TheProcessLogsDirectoryIsInTheRunDirectory) {
  v1::NodeLaunch order = shell_launch(dir_.path(), "true", 2);
  order.mutable_ranks(1)->set_plog_dir("plog/rank-1");
  const auto made = make(order, "/bin");
  ASSERT_TRUE(made) << made.error().message;
  const std::string variable = "ASCEND_PROCESS_LOG_PATH=" + in("run/plog/rank-1");
  EXPECT_EQ(std::ranges::count(made->ranks(1).env(), variable), 1);
  EXPECT_EQ(std::ranges::count_if(
                made->ranks(0).env(),
                [](const std::string& one) { return one.starts_with("ASCEND_PROCESS_LOG_PATH="); }),
            0);
  std::filesystem::create_directory(dir_.path() / "run");
  const rundir::RunLayout layout(dir_.path() / "run");
  for (int again = 0; again < 2; ++again) ASSERT_TRUE(make_plog_dirs(order, layout));
  EXPECT_EQ(std::filesystem::status(layout.plog_dir(1)).permissions(),
            std::filesystem::perms::owner_all);
  EXPECT_FALSE(std::filesystem::exists(layout.plog_dir(0)));
  std::filesystem::remove_all(layout.root());
  EXPECT_TRUE(make_plog_dirs(order, layout).error().message.starts_with(
      "making the process logs' directories: "));
}

// A virtual environment's python3 is a link to the system's: Python finds the environment by the
// name that it was called with.
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
  EXPECT_EQ(made.error().message,
            "launch.run: there is no 'python3' on PATH '/nowhere', and no '" +
                in("system/python3") +
                "' either; install Python on this node, or name one by its path");
}

TEST_F(LaunchRecordTest, AProgramThatIsNotThereIsReportedWithItsKeyAndARemedy) {
  interpreter("bin/trainer");
  EXPECT_EQ(
      make(python_launch("trainr"), in("bin")).error().message,
      "launch.run: there is no 'trainr' on PATH '" + in("bin") +
          "'; nearest: 'trainer'; install it on this node, name it by its path, or set PATH in "
          "runtime.env");
  EXPECT_EQ(make(python_launch(in("bin/trainr")), in("bin")).error().message,
            "launch.run: '" + in("bin/trainr") + "' is not there on this node; nearest: '" +
                in("bin/trainer") + "'");
  v1::NodeLaunch order = python_launch(dir_.write("run.sh", "#!/bin/sh\n").string());
  v1::NeededFile& script = *order.add_needed();
  script.set_source(in("run.sh"));
  script.set_key("launch.script");
  EXPECT_EQ(
      make(order, in("bin")).error().message,
      "launch.script: '" + in("run.sh") +
          "' is not an executable file; make it one (chmod +x), or name its interpreter before it");
  EXPECT_EQ(make(python_launch(in("bin")), "/bin").error().message,
            "launch.run: '" + in("bin") + "' is a directory; name the file in it");
}

TEST_F(LaunchRecordTest, APythonThatWasNamedIsTakenAsItIs) {
  interpreter("system/python3");
  const auto named = interpreter("named/python3.9");
  const auto made = make(python_launch(named.string()), "/nowhere");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->ranks(0).argv(0), named.string());
  EXPECT_FALSE(make(python_launch("python3.9"), "/nowhere"))
      << "a name that was asked for is not replaced by another";
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
  EXPECT_EQ(path_of(*make(python_launch(), "")),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

v1::NodeLaunch with_auxiliary(v1::NodeLaunch order) {
  v1::AuxiliaryProcess& auxiliary = *order.add_auxiliaries();
  auxiliary.set_name("scheduler");
  for (const char* word : {"python3", "run.py"}) auxiliary.add_argv(word);
  auxiliary.set_cwd("/");
  (*auxiliary.mutable_env())["MS_ROLE"] = "MS_SCHED";
  return order;
}
std::vector<std::string> all(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return {words.begin(), words.end()};
}
bool has(const std::vector<std::string>& variables, const std::string& variable) {
  return std::ranges::find(variables, variable) != variables.end();
}

TEST_F(LaunchRecordTest, AAuxiliaryHasItsOwnPathAndNothingOfTheRanks) {
  interpreter("agent/python3");
  const auto own = interpreter("own/python3");
  v1::NodeLaunch order = with_auxiliary(python_launch());
  (*order.mutable_env())["OF_RANKS"] = "1";
  (*order.mutable_auxiliaries(0)->mutable_env())["PATH"] = in("own");
  const auto made = make(order, in("agent"));
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->auxiliaries_size(), 1);
  const auto& auxiliary = made->auxiliaries(0);
  EXPECT_EQ(all(auxiliary.argv()), (std::vector<std::string>{own.string(), "run.py"}));
  EXPECT_EQ(auxiliary.log(), in("run/logs/auxiliary-scheduler.log"));
  const auto environment = all(auxiliary.env());
  EXPECT_TRUE(has(environment, "MS_ROLE=MS_SCHED"));
  EXPECT_TRUE(has(environment, "PATH=" + in("own")));
  EXPECT_TRUE(has(environment, "LANG=C.UTF-8"));
  EXPECT_TRUE(has(environment, "MUSTER_PROCESS_TAG=" + run_process_tag()));
  EXPECT_FALSE(has(environment, "OF_RANKS=1"));
  order.mutable_auxiliaries()->Add()->CopyFrom(order.auxiliaries(0));
  EXPECT_EQ(make(order, in("agent")).error().message,
            "starting auxiliary process 'scheduler': there is another one of that name");
  order = with_auxiliary(python_launch());
  order.mutable_auxiliaries(0)->clear_argv();
  EXPECT_EQ(make(order, in("agent")).error().message,
            "starting auxiliary process 'scheduler': its command line is empty");
}

// What the setup will leave is not known yet: the record has only the order's own variables, and
// programs as they were named.
TEST_F(LaunchRecordTest, WithASetupTheBaseIsTheSetupsAndProgramsAreFoundLater) {
  v1::NodeLaunch order = with_auxiliary(python_launch());
  (*order.mutable_env())["LANG"] = "of the order";
  order.mutable_setup()->add_commands("true");
  order.mutable_setup()->set_cwd("/code");
  order.mutable_setup()->mutable_timeout()->set_seconds(90);
  const auto made = make(order, "/agents/bin");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(all(made->env()), (std::vector<std::string>{
                                  "LANG=of the order", "MUSTER_PROCESS_TAG=" + run_process_tag()}));
  EXPECT_EQ(made->ranks(0).argv(0), "python3");
  EXPECT_EQ(
      all(made->auxiliaries(0).env()),
      (std::vector<std::string>{"MS_ROLE=MS_SCHED", "MUSTER_PROCESS_TAG=" + run_process_tag()}));
  EXPECT_EQ(made->auxiliaries(0).argv(0), "python3");
  const auto argv = all(made->setup().argv());
  ASSERT_GT(argv.size(), 4U);
  EXPECT_EQ(argv.front(), "/usr/bin/env");
  EXPECT_TRUE(has(argv, "PATH=/agents/bin"));
  EXPECT_TRUE(has(argv, "PYTHONUNBUFFERED=1"));
  EXPECT_FALSE(has(argv, "LANG=C.UTF-8"))
      << "the order's is in the common environment, which the setup has too";
  EXPECT_EQ((std::vector<std::string>(argv.end() - 2, argv.end())),
            (std::vector<std::string>{"-e", in("run/setup.sh")}));
  EXPECT_EQ(made->setup().cwd(), "/code");
  EXPECT_EQ(made->setup().log(), in("run/logs/setup.log"));
  EXPECT_EQ(made->setup().env_file(), in("run/setup.env"));
  EXPECT_EQ(made->setup().timeout_ms(), 90'000);
}

TEST_F(LaunchRecordTest, TheOrderIsKeptWithoutItsFiles) {
  interpreter("bin/python3");
  v1::NodeLaunch order = python_launch();
  order.add_files()->set_content(std::string(1U << 20U, 'x'));
  order.mutable_watching()->set_grammar("mindformers");
  const auto made = make(order, in("bin"));
  ASSERT_TRUE(made);
  EXPECT_LT(made->order().size(), 4096U);
  v1::NodeLaunch kept;
  ASSERT_TRUE(kept.ParseFromString(made->order()));
  EXPECT_EQ(kept.watching().grammar(), "mindformers");
  EXPECT_EQ(kept.ranks_size(), 2);
}

// An agent of root has directories on its PATH that only root may enter; a rank of another user
// would find that out only at its exec.
TEST_F(LaunchRecordTest, WhatAnotherUserMayNotExecuteIsPassedOver) {
  const UserEntry other{
      .name = "other", .home = "/", .uid = 54'321, .gid = 54'321, .groups = {54'322}};
  std::filesystem::permissions(dir_.path(), static_cast<std::filesystem::perms>(0755));
  interpreter("locked/python3");
  std::filesystem::permissions(dir_.path() / "locked", static_cast<std::filesystem::perms>(0700));
  const auto own = interpreter("own/python3");
  std::filesystem::permissions(own, static_cast<std::filesystem::perms>(0700));
  const auto open = interpreter("open/python3");
  const std::string path = in("locked") + ":" + in("own") + ":" + in("open");
  EXPECT_EQ(resolve_program("python3", path, "/", &other).value(), open.string());
  EXPECT_EQ(resolve_program("python3", path, "/").value(), in("locked/python3"))
      << "the agent's own user may";
  // For a link, the permissions on the path to the target count.
  std::filesystem::create_directories(dir_.path() / "linked");
  std::filesystem::create_symlink(dir_.path() / "locked/python3", dir_.path() / "linked/python3");
  const auto refused = resolve_program("python3", in("linked"), "/", &other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "'python3' on PATH '" + in("linked") + "' is not an executable file for user 'other'");
}

}  // namespace
}  // namespace muster::agent
