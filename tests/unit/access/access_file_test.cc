// Regression story: a file that gives rights must never be half understood. Each mistake is an
// error with its place, and a file with one gives nobody a role.
#include "controller/access/access_file.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::controller {
namespace {

std::string problems(std::string_view text) {
  const auto policy = parse_access(text, "access.yaml");
  return policy ? "" : policy.error().message;
}

TEST(AccessFile, UsersGroupsAndTheDefault) {
  const auto policy = parse_access(
      "default: viewer\n"
      "users: {alice: operator, carol: viewer}\n"
      "groups:\n"
      "  lab: [bob, carol]\n"
      "  staff: [bob, dora]\n"
      "roles: {lab: user, staff: admin}\n"
      "others_may: [logs, env, cancel]\n",
      "access.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->role_of("alice"), UserRole::Operator);
  EXPECT_EQ(policy->role_of("bob"), UserRole::Admin);     // the highest of his groups
  EXPECT_EQ(policy->role_of("carol"), UserRole::Viewer);  // her own role wins
  EXPECT_EQ(policy->role_of("dora"), UserRole::Admin);
  EXPECT_EQ(policy->role_of("eve"), UserRole::Viewer);
  EXPECT_EQ(policy->others_may,
            (std::set<JobRight>{JobRight::Logs, JobRight::Env, JobRight::Cancel}));
}

TEST(AccessFile, AnEmptyFileIsTheDefault) {
  for (const char* text : {"", "# nobody\n", "{}\n"}) {
    const auto policy = parse_access(text, "access.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ(policy->role_of("alice"), UserRole::User);
    EXPECT_TRUE(policy->others_may.empty());
  }
}

TEST(AccessFile, EachProblemHasItsPlace) {
  EXPECT_EQ(problems("defualt: user\n"),
            "access.yaml:1:1: unknown key 'defualt'; did you mean 'default'?");
  EXPECT_EQ(problems("default: uesr\n"),
            "access.yaml:1:10: unknown role 'uesr'; did you mean 'user'?");
  EXPECT_EQ(problems("default: boss\n"),
            "access.yaml:1:10: unknown role 'boss'; there are: viewer, user, operator, admin");
  EXPECT_EQ(problems("users:\n  'a b': user\n"),
            "access.yaml:2:3: 'a b' is no user's name: letters, digits, '.', '_', '-', at most 63, "
            "the first a letter or digit");
  EXPECT_EQ(problems("groups: {lab: [bob]}\n"),
            "access.yaml:1:10: group 'lab' has no role; write roles: {lab: ROLE}");
  EXPECT_EQ(problems("groups: {lab: [bob]}\nroles: {lba: user, lab: user}\n"),
            "access.yaml:2:9: unknown group 'lba'; did you mean 'lab'?");
  EXPECT_EQ(problems("others_may: [log]\n"),
            "access.yaml:1:14: unknown right 'log'; did you mean 'logs'?");
  EXPECT_EQ(problems("users: [alice]\n"),
            "access.yaml:1:8: a map of users, each with a role, is expected here");
  EXPECT_EQ(problems("- alice\n"),
            "access.yaml:1:1: a map is expected, with the keys default, users, groups, roles, "
            "others_may");
}

TEST(AccessFile, AllProblemsAtOnce) {
  const std::string all = problems("default: boss\nusers: {alice: king}\nother: 1\n");
  EXPECT_NE(all.find("access.yaml:1:10: "), std::string::npos) << all;
  EXPECT_NE(all.find("access.yaml:2:16: "), std::string::npos) << all;
  EXPECT_NE(all.find("access.yaml:3:1: "), std::string::npos) << all;
}

TEST(AccessFile, WhatIsNoYaml) {
  for (const char* text : {"users: {", "a: b: c", "users: &x {}\ngroups: *x\n",
                           "users: {a: user}\nusers: {b: user}\n"})
    EXPECT_NE(problems(text), "") << text;
  // Regression: the parser quotes one byte, of whatever kind.
  EXPECT_TRUE(problems("\"\\\x06\"").contains("unknown escape character: ?"));
  EXPECT_TRUE(problems("\"\\\u00e9\"").contains("unknown escape character: ?"));
}

}  // namespace
}  // namespace muster::controller
