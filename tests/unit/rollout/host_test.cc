// How a host becomes root: which hosts share a password, and what a refused one leads to.
#include "deploy/rollout/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Person final : public ssh::Prompts {
 public:
  explicit Person(std::deque<std::string> answers) : answers_(std::move(answers)) {}
  std::optional<ssh::Secret> ask(const ssh::Question& question) override {
    asked.push_back(question.text);
    if (answers_.empty()) return std::nullopt;
    std::string answer = std::move(answers_.front());
    answers_.pop_front();
    return ssh::Secret(std::move(answer));
  }
  std::vector<std::string> asked;

 private:
  std::deque<std::string> answers_;
};

// A host where `user` is logged in, and sudo wants the password `right`.
void set_up(const LocalHost& local, const std::string& user) {
  local.program(local.bin("id"), "case $1 in -un) echo " + user + ";; *) echo 1000;; esac\n");
  local.program(local.bin("sudo"), R"sh(
if [ "$1" = -n ]; then echo "sudo: a password is required" >&2; exit 1; fi
read -r answer
[ "$answer" = right ] || { echo "Sorry, try again." >&2
  echo "sudo: 1 incorrect password attempt" >&2; exit 1; }
shift 4
exec "$@"
)sh");
}

hosts::Login login(const std::string& host) { return {.host = host, .sudo = true}; }

TEST(Host, ARefusedPasswordIsAskedAgainAndTheRightOneIsShared) {
  const LocalHost local;
  set_up(local, "ann");
  Person person({"wrong", "right"});
  ssh::PromptOnce once(person);
  auto first = host_over(local, once, login("h1"));
  ASSERT_TRUE(first) << first.error().message;
  const auto second = host_over(local, once, login("h2"));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(person.asked.size(), 2U);
  EXPECT_THAT(person.asked.front(), AllOf(HasSubstr("of ann "), HasSubstr("'h1'")));
  const auto output = first->need("reading", "cat", "the input\n");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "the input\n");
}

TEST(Host, AnotherUserOrAnotherWayIsAskedForItsOwnPassword) {
  const LocalHost local, other;
  set_up(local, "ann");
  set_up(other, "bob");
  Person person({"right", "right", "right"});
  ssh::PromptOnce once(person);
  ASSERT_TRUE(host_over(local, once, login("h1")));
  ASSERT_TRUE(host_over(other, once, login("h2")));
  hosts::Login jumped = login("h3");
  jumped.jump = "bastion";
  ASSERT_TRUE(host_over(local, once, jumped));
  EXPECT_THAT(person.asked, ElementsAre(HasSubstr("ann"), HasSubstr("bob"), HasSubstr("'h3'")));
}

TEST(Host, ThreeWrongPasswordsAreTheEnd) {
  const LocalHost local;
  set_up(local, "ann");
  Person person({"a", "b", "c", "right"});
  ssh::PromptOnce once(person);
  const auto host = host_over(local, once, login("h1"));
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().message, HasSubstr("incorrect password"));
  EXPECT_EQ(person.asked.size(), 3U);
}

TEST(Host, WithoutAPersonThePasswordIsNotTried) {
  const LocalHost local;
  set_up(local, "ann");
  ssh::NoPrompts nobody;
  const auto host = host_over(local, nobody, login("h1"));
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().message, HasSubstr("NOPASSWD"));
}

// A rule of sudoers may be for sh alone.
TEST(Host, SudoIsTriedWithTheProgramThatItRuns) {
  const LocalHost local;
  set_up(local, "ann");
  local.program(local.bin("sudo"), R"sh(
[ "$1 $2" = '-n sh' ] || { echo "sudo: a password is required" >&2; exit 1; }
shift
exec "$@"
)sh");
  ssh::NoPrompts nobody;
  auto host = host_over(local, nobody, login("h1"));
  ASSERT_TRUE(host) << host.error().message;
  const auto output = host->need("reading", "cat", "the input\n");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "the input\n");
}

TEST(Host, APasswordThatSudoDoesNotReadIsNeitherRunNorAnInput) {
  const LocalHost local;
  set_up(local, "ann");
  const auto ran = local.dir() / "ran", asks = local.dir() / "asks";
  local.program(local.bin("sudo"), R"sh(
if [ "$1" = -n ]; then echo "sudo: a password is required" >&2; exit 1; fi
if [ -e ')sh" + asks.string() + R"sh(' ]; then read -r password; fi
shift 4
exec "$@"
)sh");
  const std::string password = "touch '" + ran.string() + "'";
  Person person({password, password});
  const auto never = host_over(local, person, login("h1"));
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("without reading the password"));

  local.write(asks, "");
  auto host = host_over(local, person, login("h1"));
  ASSERT_TRUE(host) << host.error().message;
  ASSERT_TRUE(host->need_long("doing", "true\n"));
  std::filesystem::remove(asks);
  EXPECT_FALSE(host->need_long("doing", "true\n"));
  const auto output = host->run("cat", "the input");
  EXPECT_FALSE(output) << output->out;
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST(Host, AnOutputThatWasCutIsAnError) {
  const LocalHost local;
  ssh::NoPrompts nobody;
  auto host = host_over(local, nobody);
  ASSERT_TRUE(host);
  const auto output = host->need("reading it", "head -c 1100000 /dev/zero");
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().message, HasSubstr("reading it: the answer of 'h1' has more than"));
}

// What a login shell does before it runs the command: it prints lines, or runs nothing.
class Greeting final : public ssh::Session {
 public:
  Greeting(const LocalHost& local, std::string prints, bool runs)
      : local_(local), prints_(std::move(prints)), runs_(runs) {}
  Result<ssh::Output> run(const ssh::Command& command, ssh::Source input,
                          Duration timeout) override {
    ssh::Output output{.status = 1};
    if (runs_) output = *LocalSession(local_).run(command, std::move(input), timeout);
    output.out.insert(0, prints_);
    return output;
  }
  [[nodiscard]] const ssh::Transport& transport() const override { return transport_; }

 private:
  const LocalHost& local_;
  std::string prints_;
  bool runs_;
  ssh::Transport transport_;
};

TEST(Host, WhatTheLoginShellPrintsIsNotTheScriptsOutput) {
  const LocalHost local;
  ssh::NoPrompts nobody;
  auto host = Host::over({.host = "h1"},
                         std::make_unique<Greeting>(local, "Welcome!\nno newline", true), nobody);
  ASSERT_TRUE(host);
  const auto output = host->need("reading", "printf 'a!\\n\\tb%%\\\\'; cat", "'in'");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "a!\n\tb%\\'in'");
  auto none = Host::over(
      {.host = "h1"}, std::make_unique<Greeting>(local, "This account is not available.\n", false),
      nobody);
  ASSERT_TRUE(none);
  const auto refused = none->run("true");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("on 'h1': the login shell does not run it: This account is not"),
                    HasSubstr("chsh")));
}

// The words of csh and fish differ from those of sh in quotes: of a line end, '!', and '\'.
TEST(Host, EveryLoginShellReadsTheSameCommand) {
  const LocalHost local;
  ssh::NoPrompts nobody;
  for (const char* shell : {"csh", "tcsh", "fish", "zsh", "bash"}) {
    const auto path = process::find_program(shell, "/usr/bin:/bin");
    if (!path) continue;
    class ByShell final : public ssh::Session {
     public:
      ByShell(const LocalHost& local, std::string path) : local_(local), path_(std::move(path)) {}
      Result<ssh::Output> run(const ssh::Command& command, ssh::Source input,
                              Duration timeout) override {
        local_.write(local_.dir() / "command", command.text);
        return LocalSession(local_).run(
            {.text = path_ + " -c \"$(cat '" + (local_.dir() / "command").string() + "')\""},
            std::move(input), timeout);
      }
      [[nodiscard]] const ssh::Transport& transport() const override { return transport_; }

     private:
      const LocalHost& local_;
      std::string path_;
      ssh::Transport transport_;
    };
    auto host = Host::over({.host = "h1"}, std::make_unique<ByShell>(local, *path), nobody);
    ASSERT_TRUE(host) << shell;
    const auto output =
        host->need("reading", "set -eu\nx='a!b\\c$HOME \"`'\nprintf '%s\\n' \"$x\"");
    ASSERT_TRUE(output) << shell << ": " << output.error().message;
    EXPECT_EQ(*output, "a!b\\c$HOME \"`\n") << shell;
  }
}

}  // namespace
}  // namespace muster::rollout
