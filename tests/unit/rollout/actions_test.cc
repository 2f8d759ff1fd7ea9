// The scripts of the actions, run by the sh of this machine: what they make, remove, and leave.
#include "deploy/rollout/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <vector>

#include "common/digest/sha256.h"
#include "common/process/identity.h"
#include "common/process/spawn.h"
#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Actions : public testing::Test {
 protected:
  Actions() {
    deployed_.places = {.prefix = (local_.dir() / "opt/muster").string(),
                        .state_dir = (local_.dir() / "data/muster").string()};
    deployed_.versions = {"0.1.0"};
    auto opened = host_over(local_, nobody_);
    host_.emplace(std::move(*opened));
  }

  // What an `up` without systemd leaves for a role; its supervisor is a script.
  void install(Role role) {
    const Places& places = deployed_.places;
    for (const std::string_view name : programs_of(role))
      local_.program(fs::path(places.bin("0.1.0")) / name,
                     "echo \"$@\" >> '" + calls().string() + "'\n");
    ASSERT_TRUE(set_current(*host_, places, "0.1.0"));
    local_.write(places.config_file(role), "x\n");
  }
  [[nodiscard]] fs::path state() const { return deployed_.places.state_dir; }
  [[nodiscard]] fs::path mark() const { return state() / kStateMark; }
  [[nodiscard]] fs::path muster() const { return deployed_.places.current() + "/bin/muster"; }
  [[nodiscard]] fs::path calls() const { return local_.dir() / "calls"; }
  [[nodiscard]] fs::path supervisor() const {
    return deployed_.places.role_dir(Role::Agent) + "/supervisor";
  }
  static fs::perms mode(const fs::path& path) { return fs::status(path).permissions(); }

  // The notes of a whole removal of the agent.
  std::vector<std::string> purge(bool programs = true) {
    std::vector<std::string> notes;
    const auto done =
        remove_role(*host_, Role::Agent, deployed_, {.purge = true, .programs = programs},
                    [&](const std::string& note) { notes.push_back(note); });
    EXPECT_TRUE(done) << done.error().message;
    return notes;
  }

  const LocalHost local_;
  ssh::NoPrompts nobody_;
  std::optional<Host> host_;
  Deployed deployed_;
};

// A host's openssl may say that a large file is right, and never that it is wrong.
TEST_F(Actions, TheDigestOfAProgramIsCheckedWithAndWithoutOpenssl) {
  const std::string bin = deployed_.places.bin("0.1.0");
  const fs::path file = fs::path(bin) / "muster", asked = local_.dir() / "asked";
  const ProgramBytes bytes(std::string(2U << 20U, 'x'));
  const ProgramFacts right{.sha256 = sha256_hex(bytes.raw()), .bytes = bytes.raw().size()};
  const ProgramFacts wrong{.sha256 = sha256_hex("y"), .bytes = bytes.raw().size()};
  const auto send = [&](const ProgramFacts& facts) {
    fs::remove(file);
    return install_program(*host_, bin, "muster", facts, bytes, false);
  };
  for (const std::string& digest :
       {std::string("no openssl here"), wrong.sha256 + " *stdin", right.sha256 + " *stdin"}) {
    local_.program(local_.bin("openssl"),
                   "echo \"$*\" > '" + asked.string() + "'; echo '" + digest + "'\n");
    const auto sent = send(right);
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_EQ(local_.read(asked), "dgst -sha256 -r\n");
    EXPECT_EQ(fs::file_size(file), bytes.raw().size());
    EXPECT_EQ(mode(file), fs::perms(0755));
  }
  local_.program(local_.bin("openssl"), "exit 1\n");
  EXPECT_TRUE(send(right));
  const auto sent = send(wrong);
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().message,
              HasSubstr("what arrived has another digest than what was sent"));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(file.string() + ".new"));
}

TEST_F(Actions, AConfigurationIsCheckedByTheProgramThatIsToRun) {
  const Wanted wanted{.role = Role::Controller,
                      .name = "controller",
                      .login = {.host = "h1"},
                      .state_dir = deployed_.places.state_dir,
                      .address = "0.0.0.0:7070",
                      .options = {"--access=/etc/it's.yaml"}};
  const fs::path program = fs::path(deployed_.places.bin("0.2.0")) / "muster-controller";
  local_.program(program, "for word; do echo \"$word\"; done > '" + calls().string() + "'\n");
  const auto check = [&] { return check_config(*host_, wanted, deployed_.places, "0.2.0"); };
  const auto sound = check();
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_THAT(local_.read(calls()), HasSubstr("\n--access=/etc/it's.yaml\n--check-config\n"));
  EXPECT_FALSE(fs::exists(deployed_.places.role_dir(Role::Controller)));
  local_.program(program, "echo 'muster-controller: a.yaml:1:1: wrong' >&2; exit 64\n");
  const auto wrong = check();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "checking the configuration of the controller on 'h1': muster-controller: "
            "a.yaml:1:1: wrong");
}

TEST_F(Actions, AStateDirectoryThatUpMadeIsPrivateAndGoesWithPurge) {
  install(Role::Agent);
  for (int i = 0; i < 2; ++i) {
    const auto started = start_daemon(*host_, Role::Agent, deployed_.places);
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_TRUE(fs::is_regular_file(mark()));
    EXPECT_EQ(mode(state()), fs::perms::owner_all);
    fs::permissions(state(), fs::perms::all);  // the next start takes this back
  }
  EXPECT_THAT(local_.read(calls()), HasSubstr("deploy supervise start"));
  local_.write(state() / "journal/1", "x");
  EXPECT_THAT(purge(), IsEmpty());
  EXPECT_FALSE(fs::exists(state()));
  EXPECT_FALSE(fs::exists(deployed_.places.prefix));
  EXPECT_THAT(purge(), IsEmpty());  // there is nothing left, and nothing is kept
}

TEST_F(Actions, ADirectoryThatWasThereKeepsItsModeAndItsFiles) {
  install(Role::Agent);
  local_.write(state() / "photo", "x");
  fs::permissions(state(), fs::perms(0755));
  ASSERT_TRUE(start_daemon(*host_, Role::Agent, deployed_.places));
  EXPECT_EQ(mode(state()), fs::perms(0755));
  EXPECT_FALSE(fs::exists(mark()));
  EXPECT_THAT(purge(), ElementsAre(HasSubstr("kept '" + state().string() + "'")));
  EXPECT_TRUE(fs::exists(state() / "photo"));
  EXPECT_FALSE(fs::exists(deployed_.places.prefix));
}

TEST_F(Actions, OutputsOfJobsStayUnlessTheyAreNamed) {
  install(Role::Controller);
  ASSERT_TRUE(start_daemon(*host_, Role::Controller, deployed_.places));
  local_.write(state() / "journal/1", "x");
  local_.write(state() / "outputs/job/checkpoint", "x");
  std::vector<std::string> notes;
  const auto purged = [&](bool outputs) {
    return remove_role(*host_, Role::Controller, deployed_, {.purge = true, .outputs = outputs},
                       [&](const std::string& note) { notes.push_back(note); });
  };
  ASSERT_TRUE(purged(false));
  EXPECT_TRUE(fs::exists(state() / "outputs/job/checkpoint"));
  EXPECT_FALSE(fs::exists(state() / "journal"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("kept '" + (state() / "outputs").string() + "'")));
  ASSERT_TRUE(purged(true));
  EXPECT_FALSE(fs::exists(state()));
}

TEST_F(Actions, TheMarksOfTheOutputsCheckAreNoOutputs) {
  install(Role::Controller);
  ASSERT_TRUE(start_daemon(*host_, Role::Controller, deployed_.places));
  local_.write(state() / "outputs/.muster/seen/i.1", "");
  local_.write(state() / "outputs/job/checkpoint", "x");
  const auto purged = [&] {
    return remove_role(*host_, Role::Controller, deployed_, {.purge = true}).has_value();
  };
  ASSERT_TRUE(purged());
  EXPECT_FALSE(fs::exists(state() / "outputs/.muster"));
  EXPECT_TRUE(fs::exists(state() / "outputs/job/checkpoint"));
  local_.write(state() / "outputs/.muster/storage", "x");
  fs::remove(state() / "outputs/job/checkpoint");
  ASSERT_TRUE(purged());
  EXPECT_FALSE(fs::exists(state()));
}

TEST_F(Actions, WhatAnAgentMadeBelowTheControllersStateDirectoryGoesWithIt) {
  install(Role::Agent);
  const fs::path controller = local_.dir() / "lib/muster/controller";
  std::vector<std::string> notes;
  const auto purged = [&](bool outputs = false) {
    notes.clear();
    local_.write(controller / "outputs/.muster/seen/i.1", "");
    return remove_role(*host_, Role::Agent, deployed_,
                       {.purge = true,
                        .outputs = outputs,
                        .node = "n1",
                        .outputs_root = (controller / "outputs").string()},
                       [&](const std::string& note) { notes.push_back(note); })
        .has_value();
  };
  local_.write(controller / "outputs/job/checkpoint", "x");
  ASSERT_TRUE(purged());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("kept '" + (controller / "outputs").string() + "'")));
  EXPECT_FALSE(fs::exists(controller / "outputs/.muster"));
  EXPECT_TRUE(fs::exists(controller / "outputs/job/checkpoint"));
  fs::remove_all(controller / "outputs/job");
  local_.write(controller / "inputs/cache/objects/ab/abcd", "fetched");
  ASSERT_TRUE(purged());
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_FALSE(fs::exists(controller.parent_path()));
  EXPECT_TRUE(fs::exists(local_.dir() / "lib"));
  local_.write(controller / "outputs/job/checkpoint", "x");
  ASSERT_TRUE(purged(true));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_FALSE(fs::exists(controller.parent_path()));
}

TEST_F(Actions, WhatAJobLeftIsNotPurgedUnderIt) {
  install(Role::Agent);
  ASSERT_TRUE(start_daemon(*host_, Role::Agent, deployed_.places));
  local_.write(state() / "runs/job.1/launch", "x");
  const auto start = [](const std::string& tag) {
    const auto pid = process::spawn({.path = "/bin/sleep",
                                     .argv = {"sleep", "600"},
                                     .env = {"MUSTER_PROCESS_TAG=" + tag},
                                     .cwd = "/"});
    return pid ? *pid : -1;
  };
  const pid_t own = start("c/job.1@n1"), other = start("c/job.1@n2"), unknown = start("c/x.1@n1");
  ASSERT_TRUE(own > 0 && other > 0 && unknown > 0);
  const auto purged = [&](bool end_jobs) {
    const auto done = remove_role(*host_, Role::Agent, deployed_,
                                  {.purge = true, .end_jobs = end_jobs, .node = "n1"});
    return done ? std::string() : done.error().message;
  };
  EXPECT_THAT(purged(false), HasSubstr("run on it: " + std::to_string(own) + ";"));
  EXPECT_TRUE(fs::exists(state() / "runs/job.1/launch"));
  EXPECT_EQ(purged(true), "");
  EXPECT_FALSE(fs::exists(state()));
  EXPECT_EQ(::waitpid(own, nullptr, WNOHANG), own);  // only that one was killed
  for (const pid_t pid : {other, unknown}) {
    EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

TEST_F(Actions, ProgramsStayForTheOtherRole) {
  install(Role::Controller);
  install(Role::Agent);
  purge();
  EXPECT_TRUE(fs::exists(muster()));
  EXPECT_FALSE(fs::exists(deployed_.places.role_dir(Role::Agent)));
  fs::remove(deployed_.places.config_file(Role::Controller));
  fs::remove(deployed_.places.role_dir(Role::Controller));
  purge();
  EXPECT_FALSE(fs::exists(deployed_.places.prefix));
}

TEST_F(Actions, ProgramsStayForTheUnitOfTheOtherRoleThatStartsThem) {
  const fs::path unit = local_.units() / unit_name(Role::Controller);
  Places places = deployed_.places;
  places.systemd = true;
  const auto text = [](const Places& of) {
    return config_text({.role = Role::Controller, .name = "controller", .address = "h:1"}, of);
  };
  install(Role::Agent);
  local_.write(unit, text(places));
  purge();
  EXPECT_TRUE(fs::exists(muster()));
  places.prefix += "-other";  // a controller with its own programs
  local_.write(unit, text(places));
  purge();
  EXPECT_FALSE(fs::exists(deployed_.places.prefix));
}

TEST_F(Actions, ManyVersionsAreRemoved) {
  install(Role::Agent);
  for (int i = 0; i < 300; ++i) deployed_.versions.push_back("0.2." + std::to_string(i));
  purge();
  EXPECT_FALSE(fs::exists(deployed_.places.prefix));
}

TEST_F(Actions, ADaemonWhoseSupervisorsProgramIsGoneIsAnError) {
  const auto boot = process::boot_id();
  const auto self = process::self();
  ASSERT_TRUE(boot && self);
  const std::string started = std::to_string(self->start_time);
  const auto stop = [&] { return stop_daemon(*host_, Role::Agent, deployed_.places); };
  EXPECT_TRUE(stop());  // nothing was ever there
  install(Role::Agent);
  const std::string runs = boot->str() + " 1 1 " + std::to_string(self->pid) + " " + started + "\n";
  local_.write(supervisor(), runs);
  ASSERT_TRUE(stop());
  EXPECT_THAT(local_.read(calls()), HasSubstr("deploy supervise stop"));

  fs::remove_all(deployed_.places.bin("0.1.0"));
  const auto failed = stop();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("is gone; run 'muster deploy up'"));
  EXPECT_THAT(failed.error().message, HasSubstr("kill " + std::to_string(self->pid)));
  // The file of a process that ended, or of the boot before.
  local_.write(supervisor(), boot->str() + " 1 1 " + std::to_string(self->pid) + " 1" + started);
  EXPECT_TRUE(stop());
  local_.write(supervisor(), "other " + runs.substr(runs.find(' ') + 1));
  EXPECT_TRUE(stop());
  fs::remove(supervisor());
  EXPECT_TRUE(stop());
}

}  // namespace
}  // namespace muster::rollout
