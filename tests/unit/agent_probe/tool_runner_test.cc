// External programs, at their worst.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "common/process/pidfd.h"
#include "common/process/tool.h"
#include "folder.h"

namespace muster::agent::probe {
namespace {

using process::ToolLimits;
using process::ToolRequest;
using std::chrono::milliseconds;

const std::vector<std::string> kEnv = {"PATH=/usr/bin:/bin", "LANG=C"};

// For programs that end by themselves, however slow the machine is.
ToolLimits patient() { return {.each = milliseconds(60'000), .total = milliseconds(120'000)}; }

bool gone(pid_t pid) {
  // It is not a child of this process; only its existence is checked.
  const auto handle = process::Pidfd::open_child(pid);
  if (!handle) return true;
  pollfd wait{.fd = handle->fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 60'000) == 1;
}

pid_t pid_in(const std::string& path) {
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid;
}

TEST(ToolRunner, IsObservedWhileItRuns) {
  process::ToolRunner tools;
  const Folder folder;
  const std::string gate = folder.file("gate");
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  ToolLimits limits = patient();
  limits.observe_interval = milliseconds(1);
  std::string seen;
  limits.observe = [&](pid_t pid, std::string_view output) {
    if (!seen.empty() || output.empty()) return;
    seen = std::to_string(pid) + " " + std::string(output);
    std::ofstream(gate) << "go\n";
  };
  const auto answers = tools.run(
      {{"sh", {"-c", "echo $$; read -r word < '" + gate + "'; echo more"}}}, kEnv, limits);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].why, "");
  const std::string pid = answers[0].output.substr(0, answers[0].output.find('\n'));
  EXPECT_EQ(seen, pid + " " + pid + "\n");
  EXPECT_EQ(answers[0].output, pid + "\nmore\n");
}

TEST(ToolRunner, AnswersInOrderWithOutputAndStatus) {
  process::ToolRunner tools;
  std::vector<ToolRequest> requests;
  for (int n = 0; n < 9; ++n)
    requests.push_back({"sh", {"-c", "echo out $0; echo err >&2; exit $0", std::to_string(n)}});
  requests.push_back({"/no/such/tool", {}});
  requests.push_back({"sh", {"-c", "kill -SEGV $$"}});
  const auto answers = tools.run(requests, kEnv, patient());
  ASSERT_EQ(answers.size(), 11U);
  for (int n = 0; n < 9; ++n) {
    EXPECT_EQ(answers[static_cast<std::size_t>(n)].output, "out " + std::to_string(n) + "\n");
    EXPECT_EQ(answers[static_cast<std::size_t>(n)].status, n);
    EXPECT_EQ(answers[static_cast<std::size_t>(n)].why,
              n == 0 ? "" : "it ended with status " + std::to_string(n));
  }
  EXPECT_TRUE(answers[9].absent);
  EXPECT_EQ(answers[9].why, "executing '/no/such/tool': No such file or directory");
  EXPECT_EQ(answers[10].why, "it was ended by signal 11");
  EXPECT_FALSE(answers[10].status);
}

TEST(ToolRunner, NoShellAndOnlyTheEnvironmentGiven) {
  process::ToolRunner tools;
  const auto answers = tools.run({{"printf", {"%s", "$(touch pwned) `x` ; *"}}, {"env", {}}},
                                 {"PATH=/usr/bin:/bin", "A=1"}, patient());
  EXPECT_EQ(answers[0].output, "$(touch pwned) `x` ; *");
  EXPECT_EQ(answers[1].output, "PATH=/usr/bin:/bin\nA=1\n");
}

// Each tool waits for the other: they end only if they run in parallel.
TEST(ToolRunner, SoManyAtOnceAndNoMore) {
  const Folder folder;
  for (const char* name : {"a", "b"}) ASSERT_EQ(::mkfifo(folder.file(name).c_str(), 0600), 0);
  const std::vector<ToolRequest> both = {
      {"sh", {"-c", "echo 1 > \"$0\"; cat \"$1\"", folder.file("a"), folder.file("b")}},
      {"sh", {"-c", "cat \"$0\"; echo 2 > \"$1\"", folder.file("a"), folder.file("b")}}};
  process::ToolRunner tools;
  ToolLimits limits = patient();
  limits.parallel = 2;
  auto answers = tools.run(both, kEnv, limits);
  EXPECT_EQ(answers[0].output, "2\n");
  EXPECT_EQ(answers[1].output, "1\n");
  limits = {.each = milliseconds(100), .total = milliseconds(120'000), .parallel = 1};
  answers = tools.run(both, kEnv, limits);
  EXPECT_EQ(answers[0].why, "it did not end within 100 ms");
  EXPECT_EQ(answers[1].why, "it did not end within 100 ms");
}

TEST(ToolRunner, OneThatHangsIsEndedWithItsChildren) {
  const Folder folder;
  process::ToolRunner tools;
  auto env = kEnv;
  env.push_back("MUSTER_PID_FILE=" + folder.file("pid"));
  // Its second call comes after its child is known, so that the child exists when it is ended.
  const ToolRequest hang{(stand_ins() / "hang").string(), {}};
  for (int wait_ms = 100; pid_in(folder.file("pid")) == 0 && wait_ms < 60'000; wait_ms *= 2) {
    const auto answers =
        tools.run({hang}, env, {.each = milliseconds(wait_ms), .total = milliseconds(120'000)});
    EXPECT_EQ(answers[0].why, "it did not end within " + std::to_string(wait_ms) + " ms");
  }
  ASSERT_NE(pid_in(folder.file("pid")), 0);
  EXPECT_TRUE(gone(pid_in(folder.file("pid"))));
  EXPECT_EQ(tools.stuck(), 0U);
}

TEST(ToolRunner, WhatOneLeftBehindIsEnded) {
  const Folder folder;
  process::ToolRunner tools;
  const auto answers = tools.run(
      {{"sh", {"-c", "tail -f /dev/null & echo $! > \"$0\"; echo done", folder.file("pid")}}}, kEnv,
      patient());
  EXPECT_EQ(answers[0].output, "done\n");
  EXPECT_EQ(answers[0].why, "");
  EXPECT_TRUE(gone(pid_in(folder.file("pid"))));
}

TEST(ToolRunner, OneThatPrintsWithoutEnd) {
  process::ToolRunner tools;
  ToolLimits limits = patient();
  limits.bytes = 10'000;
  const auto answers = tools.run({{(stand_ins() / "flood").string(), {}}}, kEnv, limits);
  EXPECT_EQ(answers[0].why, "it printed more than 9 KiB");
  EXPECT_EQ(answers[0].output.size(), 10'000U);
}

TEST(ToolRunner, AllCallsTogetherHaveAnEnd) {
  process::ToolRunner tools;
  const ToolRequest hang{(stand_ins() / "hang").string(), {}};
  const auto answers =
      tools.run({hang, hang, hang}, kEnv,
                {.each = milliseconds(100), .total = milliseconds(150), .parallel = 1});
  EXPECT_EQ(answers[0].why, "it did not end within 100 ms");
  EXPECT_NE(answers[1].why, "");
  EXPECT_EQ(answers[2].why, "it was not asked, the time for all calls was over");
}

TEST(ToolRunner, NobodyWaitsAnyMore) {
  process::ToolRunner tools;
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  const ToolRequest hang{(stand_ins() / "hang").string(), {}};
  const auto answers = tools.run({hang, hang}, kEnv,
                                 {.each = milliseconds(600'000),
                                  .total = milliseconds(600'000),
                                  .parallel = 1,
                                  .cancel_fd = ends[0]});
  EXPECT_EQ(answers[0].why, "it was ended, nobody waited for it any more");
  EXPECT_EQ(answers[1].why, "it was not asked, nobody waited for it any more");
  ::close(ends[0]);
  ::close(ends[1]);
}

// A hanging driver keeps its caller alive even after SIGKILL. The runner leaves such a tool alone:
// it does not wait for it, and does not start it again until it is gone.
TEST(ToolRunner, OneThatDoesNotDie) {
  const Folder folder;
  ASSERT_EQ(::mkfifo(folder.file("release").c_str(), 0600), 0);
  process::ToolRunner tools;
  const ToolRequest unkillable{(stand_ins() / "unkillable").string(),
                               {folder.file("tracer"), folder.file("release")}};
  ToolLimits limits = patient();
  limits.bytes = 64 << 10;
  auto answers =
      tools.run({unkillable, unkillable}, kEnv,
                {.each = limits.each, .total = limits.total, .parallel = 1, .bytes = limits.bytes});
  if (answers[0].output == "no ptrace\n") GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_TRUE(answers[0].why.starts_with("it printed more than 64 KiB and does not die (process "))
      << answers[0].why;
  EXPECT_TRUE(answers[1].why.starts_with("an earlier one of it does not die (process "))
      << answers[1].why;
  EXPECT_EQ(tools.stuck(), 1U);
  answers = tools.run({unkillable, {"echo", {"others are asked"}}}, kEnv, patient());
  EXPECT_TRUE(answers[0].why.starts_with("an earlier one of it does not die")) << answers[0].why;
  EXPECT_EQ(answers[1].output, "others are asked\n");
  const pid_t tracer = pid_in(folder.file("tracer"));
  ASSERT_GT(tracer, 0);
  const auto handle = process::Pidfd::open_child(tracer);
  ASSERT_TRUE(handle);
  std::ofstream(folder.file("release")) << "";
  pollfd wait{.fd = handle->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  EXPECT_EQ(tools.stuck(), 0U);
}

TEST(FindProgram, OnlyWhatCanBeExecuted) {
  const Folder folder;
  folder.write("one/tool", "#!/bin/sh\n");
  folder.write("two/tool", "#!/bin/sh\n");
  std::filesystem::create_directories(folder.path() / "three/tool");
  std::filesystem::permissions(folder.path() / "two/tool", std::filesystem::perms::owner_all);
  const std::string one = folder.file("one"), two = folder.file("two"),
                    three = folder.file("three");
  EXPECT_EQ(process::find_program("tool", one + "::relative:" + three + ":" + two), two + "/tool");
  EXPECT_FALSE(process::find_program("tool", one + ":" + three + ":."));
  EXPECT_FALSE(process::find_program("tool", ""));
}

TEST(ToolEnvironment, HasNoLanguage) {
  ASSERT_EQ(::setenv("LC_ALL", "tr_TR.UTF-8", 1), 0);
  const auto env = process::tool_environment("/x");
  ASSERT_EQ(::unsetenv("LC_ALL"), 0);
  EXPECT_EQ(std::ranges::count_if(
                env, [](const std::string& variable) { return variable.starts_with("LC_"); }),
            0);
  EXPECT_EQ(std::ranges::count(env, "LANG=C"), 1);
  EXPECT_EQ(std::ranges::count(env, "PATH=/x"), 1);
  EXPECT_EQ(std::ranges::count_if(
                env, [](const std::string& variable) { return variable.starts_with("PATH="); }),
            1);
}

}  // namespace
}  // namespace muster::agent::probe
