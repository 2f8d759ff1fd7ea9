// runtime.setup: one shell before everything else, whose environment everything inherits; how it
// fails, and how it is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "common/io/file.h"
#include "common/rundir/setup_prefix.h"
#include "tests/unit/worker/run_under_test.h"
#include "worker/setup_environment.h"

namespace muster::worker {
namespace {

using rundir::v1::Event;
using rundir::v1::StopRequested;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

// What the agent writes before the first command.
const std::string kNames =
    R"(trap '[ $? = 0 ] || [ -z "${BASH_COMMAND-}" ] || [ -z "${MUSTER_SETUP_ENV-}" ] || printf %s "$BASH_COMMAND" >| "$MUSTER_SETUP_ENV" || :' EXIT; )";

class Setup : public testing::Test {
 protected:
  // As the agent writes script and record.
  void setup(const std::string& commands) { setup_of(test_, commands); }
  static void setup_of(RunUnderTest& test, const std::string& commands) {
    std::ofstream(test.run.setup_script())
        << commands << "\n/usr/bin/env -0 >| \"$MUSTER_SETUP_ENV\"\n";
    auto& launch = *test.launch.mutable_setup();
    for (const char* word : {"/usr/bin/env", "PATH=/usr/bin:/bin", "HOME=/base", "/bin/bash", "-e"})
      launch.add_argv(word);
    launch.add_argv(test.run.setup_script().string());
    launch.set_cwd(test.dir.string());
    launch.set_log(test.run.setup_log().string());
    launch.set_env_file(test.run.setup_environment().string());
    launch.set_timeout_ms(60'000);
    test.launch.clear_env();
  }
  [[nodiscard]] std::string setup_log() const {
    const auto text = io::read_file(test_.run.setup_log(), 1U << 20U);
    return text ? *text : "(" + text.error().message + ")";
  }
  // What went wrong, after a run that failed.
  std::string failure() {
    events_ = test_.events();
    const auto* failed = first(events_, Event::kStartFailed);
    EXPECT_EQ(kinds(events_), "()FQW");
    return failed == nullptr ? "no failure" : failed->start_failed().text();
  }

  RunUnderTest test_;
  RunUnderTest::Events events_;
};

TEST_F(Setup, RunsFirstAndItsEnvironmentIsEverybodysBelowTheOrders) {
  setup(
      "export FROM_SETUP='two\nlines' PATH=$PWD/venv/bin:$PATH COMMON=setup RANK=setup\ncd "
      "/\nunset HOME");
  test_.launch.add_env("COMMON=order");
  auto& auxiliary = *test_.launch.add_auxiliaries();
  auxiliary.set_name("scheduler");
  for (const char* word : {"/bin/sh", "-c", "env | grep -v '^_=' | sort"}) auxiliary.add_argv(word);
  auxiliary.set_log(test_.run.auxiliary_log("scheduler").string());
  auxiliary.add_env("MS_ROLE=MS_SCHED");
  test_.shell("env | grep -v '^_=' | sort");
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  events_ = test_.events();
  EXPECT_THAT(kinds(events_), StartsWith("()"));
  EXPECT_NE(first(events_, Event::kSetupEnded), nullptr);
  EXPECT_GT(first(events_, Event::kSetupStarted)->setup_started().start_time(), 0U);
  EXPECT_NE(first(events_, Event::kStarted), nullptr);
  const std::string dir = test_.dir.string(),
                    process_tag = "MUSTER_PROCESS_TAG=" + test_.launch.process_tag();
  EXPECT_EQ(test_.log(0), "COMMON=order\nFROM_SETUP=two\n" + process_tag + "\nPATH=" + dir +
                              "/venv/bin:/usr/bin:/bin\nPWD=" + dir +
                              "\nRANK=0\nWORLD_SIZE=1000\nlines\n");
  const auto auxiliary_log = io::read_file(test_.run.auxiliary_log("scheduler"), 10'000);
  ASSERT_TRUE(auxiliary_log);
  EXPECT_THAT(*auxiliary_log, HasSubstr("COMMON=setup\nFROM_SETUP=two\nMS_ROLE=MS_SCHED\n"));
  EXPECT_EQ(fs::status(test_.run.setup_environment()).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Setup, ProgramsAreSearchedForOnThePathThatItLeft) {
  setup(
      "mkdir -p venv/bin locked\nprintf '#!/bin/sh\\necho \"$0\" \"$@\"\\n' > "
      "venv/bin/python3\nchmod 755 venv/bin/python3\n"
      "export PATH=$PWD/none:$PWD/venv/bin:$PATH");
  test_.add({"python3", "-u", "train.py"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(test_.log(0), (test_.dir / "venv/bin/python3").string() + " -u train.py\n");
}

TEST_F(Setup, AProgramThatIsNotOnThatPathIsASentence) {
  setup(":");
  test_.add({"no-such-program"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  events_ = test_.events();
  ASSERT_NE(first(events_, Event::kStartFailed), nullptr);
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().error(), ENOENT);
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().text(),
            "executing 'no-such-program': No such file or directory; it was looked for on the PATH "
            "that runtime.setup left");
}

// Regression: only "it ended with status 3" was reported, for a setup of a dozen commands.
TEST_F(Setup, TheCommandThatEndedItIsNamed) {
  for (const auto& [commands, expected] :
       {std::pair{"echo looking; [ -d /nowhere ]",
                  "'echo looking; [ -d /nowhere ]' ended with status 1: looking"},
        {"echo one\necho two\nexit 3\n: > never", "'exit 3' ended with status 3: two"},
        {"echo one\nprintf 'true\\nfalse\\n' > source.sh\nsource ./source.sh\n: > never",
         "'source ./source.sh' ended with status 1: one"},
        {"echo one\n  (exit 5)\n: > never", "'(exit 5)' ended with status 5: one"},
        {"a=$(false) || :\nfalse || :\necho well\ntrap 'echo mine' EXIT\nexit 3",
         "it ended with status 3: mine"},
        {"fails() {\n  false\n}\nfails", "it ended with status 1"},
        {"unset MUSTER_SETUP_ENV\nexit 3", "it ended with status 3"},
        {"\nfalse "
         "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
         "90123456789012345678901234567890123456789",
         "'false "
         "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
         "9012345678901234567890123...' "
         "ended with status 1"}}) {
    SCOPED_TRACE(commands);
    RunUnderTest test;
    setup_of(test, std::string(rundir::kSetupPrefix) + commands);
    test.stub({"--block"});
    test.start();
    EXPECT_EQ(test.wait_worker(), 0);
    const auto events = test.events();
    ASSERT_NE(first(events, Event::kStartFailed), nullptr);
    EXPECT_EQ(first(events, Event::kStartFailed)->start_failed().text(),
              std::string("running runtime.setup: ") + expected);
    EXPECT_FALSE(fs::exists(test.dir / "never"));
  }
}

TEST_F(Setup, TheFirstCommandThatFailsEndsIt) {
  setup("echo one\nconda activate llama\n: > never");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(failure(),
            "running runtime.setup: it ended with status 127: line 2: conda: command not found");
  EXPECT_NE(first(events_, Event::kSetupEnded), nullptr);
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().error(), EINVAL);
  EXPECT_FALSE(fs::exists(test_.dir / "never"));
  EXPECT_FALSE(fs::exists(test_.run.rank_log(0)));
  EXPECT_THAT(setup_log(), StartsWith("one\n"));
}

// A command that a person kills, or the kernel for lack of memory, is the node's fault, and another
// start may succeed. An error that a command itself reports is the job's.
TEST_F(Setup, ACommandThatIsKilledIsNotTheJobsFault) {
  setup("sh -c 'kill -9 $$'");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_THAT(failure(), HasSubstr("it ended with status 137"));
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().error(), EAGAIN);
}

// Regression: the job ended because of it, as because of a mistake in its commands.
TEST_F(Setup, ACommandThatMeetsAFullDiskIsNotTheJobsFault) {
  setup("{ echo 'pip: [Errno 28] No space left on device: x' >&2; exit 1; }");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(
      failure(),
      "running runtime.setup: it ended with status 1: pip: [Errno 28] No space left on device: x");
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().error(), ENOSPC);
}

TEST_F(Setup, AShellThatIsKilledIsNotTheJobsFault) {
  setup("kill -9 $$");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_THAT(failure(), HasSubstr("it was ended by signal 9"));
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().error(), EAGAIN);
}

TEST_F(Setup, LeavingTheShellIsNotSuccess) {
  setup("exit 0");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_THAT(failure(), HasSubstr("it left before its last line, and its environment with it"));
}

TEST_F(Setup, TooLateIsKilledWithEverythingThatItStarted) {
  setup("echo waiting for a licence\n" + RunUnderTest::program("stub_trainer").string() +
        " --block --ignore-sigterm");
  test_.launch.mutable_setup()->set_timeout_ms(1000);
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  EXPECT_EQ(failure(),
            "running runtime.setup: it did not end within 1 s: waiting for a licence; give it "
            "longer by runtime.setup.timeout");
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().error(), ETIMEDOUT);
  EXPECT_NE(first(events_, Event::kSetupEnded), nullptr);
  EXPECT_EQ(test_.carriers(), 0U);
}

TEST_F(Setup, AStopEndsItAndNothingStarts) {
  setup(": > ready\nexec " + RunUnderTest::program("stub_trainer").string() + " --block");
  test_.stub({"--block"});
  test_.start();
  ASSERT_TRUE(test_.wait_for_file(test_.dir / "ready"));
  test_.signal(SIGTERM);
  EXPECT_EQ(test_.wait_worker(), 0);
  events_ = test_.events();
  EXPECT_EQ(kinds(events_), "(Q)W");
  EXPECT_EQ(first(events_, Event::kStopRequested)->stop_requested().why(),
            StopRequested::WHY_ASKED);
}

TEST_F(Setup, AShellThatIsNotThereIsASentence) {
  setup(":");
  test_.launch.mutable_setup()->set_argv(0, "/no/such/env");
  test_.stub({"--block"});
  test_.start();
  EXPECT_EQ(test_.wait_worker(), 0);
  events_ = test_.events();
  EXPECT_EQ(kinds(events_), "(FQ)W");
  EXPECT_EQ(first(events_, Event::kStartFailed)->start_failed().text(),
            "starting runtime.setup: executing '/no/such/env': No such file or directory");
}

std::string joined(std::initializer_list<std::string> variables) {
  std::string bytes;
  for (const std::string& variable : variables) bytes += variable + '\0';
  return bytes;
}

TEST(SetupEnvironment, IsTakenWithoutTheShellsOwn) {
  const auto parsed = parse_setup_environment(
      joined({"A=1", "PWD=/x", "OLDPWD=/", "SHLVL=1", "_=/usr/bin/env", "MUSTER_PROCESS_TAG=forged",
              "MUSTER_SETUP_ENV=/x", "nothing", "=x", "EMPTY=", "B=a=b\nc",
              "BASH_FUNC_f%%=() { :; }", "BYTES=\xff"}));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(*parsed,
              ElementsAre("A=1", "EMPTY=", "B=a=b\nc", "BASH_FUNC_f%%=() { :; }", "BYTES=\xff"));
}

TEST(SetupEnvironment, HasBounds) {
  EXPECT_FALSE(parse_setup_environment(""));
  EXPECT_THAT(parse_setup_environment("A=1").error().message, HasSubstr("written in part"));
  EXPECT_TRUE(parse_setup_environment(joined({"A=" + std::string(kSetupStringMost - 2, 'x')})));
  EXPECT_THAT(parse_setup_environment(joined({"A=" + std::string(kSetupStringMost - 1, 'x')}))
                  .error()
                  .message,
              HasSubstr("a variable 'A' of more than 128 KiB"));
  std::string many;
  for (std::size_t i = 0; i < kSetupVariablesMost; ++i)
    many += "V" + std::to_string(i) + "=" + '\0';
  EXPECT_EQ(parse_setup_environment(many)->size(), kSetupVariablesMost);
  EXPECT_THAT(parse_setup_environment(many + joined({"ONE=more"})).error().message,
              HasSubstr("more than 4096 variables"));
  RunUnderTest test;
  std::ofstream(test.dir / "env") << std::string(kSetupBytesMost + 1, 'x');
  EXPECT_THAT(read_setup_environment(test.dir / "env").error().message,
              HasSubstr("more than 1500000 bytes"));
  ASSERT_EQ(::mkfifo((test.dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_setup_environment(test.dir / "pipe").error().message,
              HasSubstr("cannot be read"))
      << "and nobody waits for a writer";
}

TEST(SetupEnvironment, TheLastLineOfALogIsOneThatCanBeRead) {
  const RunUnderTest test;
  const auto line_of = [&](const std::string& text) {
    std::ofstream(test.dir / "log") << text;
    return last_line(test.dir / "log");
  };
  EXPECT_EQ(line_of(""), "");
  EXPECT_EQ(line_of("\n \n"), "");
  EXPECT_EQ(line_of("one\ntwo\n\n"), "two");
  EXPECT_EQ(line_of("10%\r20%\r\n"), "20%");
  EXPECT_EQ(line_of("\x1b[31mred\x1b[0m\n"), "[31mred[0m");
  EXPECT_EQ(line_of("/proc/self/fd/230: line 7: x: command not found\n"),
            "line 7: x: command not found");
  EXPECT_EQ(line_of(std::string(10'000, 'x')).size(), 400U);
  EXPECT_EQ(last_line(test.dir / "none"), "");
}

}  // namespace
}  // namespace muster::worker
