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

}  // namespace
}  // namespace muster::rollout
