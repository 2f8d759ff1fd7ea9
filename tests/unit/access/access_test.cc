// Regression story: a method that forgets whose job it is about shows it to everybody. So the table
// names for each method what it needs of another user's job, and every role is tried with every
// method, on an own job and on another user's.
#include "controller/access/access.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace muster::controller {
namespace {

pki::Identity user(const std::string& name) {
  return {.cluster = "c0ffee", .role = pki::Role::User, .name = name};
}

AccessPolicy policy() {
  return {.users = {{"vera", UserRole::Viewer},
                    {"uwe", UserRole::User},
                    {"olga", UserRole::Operator},
                    {"ada", UserRole::Admin}}};
}

// Written down a second time, as rules: whoever changes a node is an operator; whoever submits or
// ends jobs, or has secrets and stores for them, is a user; whoever makes other users' tokens is an
// admin; reading is for everybody.
UserRole least_of(std::string_view method) {
  static const std::set<std::string_view> users = {
      "/muster.v1.JobService/SubmitJob", "/muster.v1.JobService/FindStages",
      "/muster.v1.JobService/PlanJob", "/muster.v1.JobService/CancelJob"};
  if (users.contains(method) || method.starts_with("/muster.v1.SecretService/") ||
      method.starts_with("/muster.v1.StoreService/"))
    return UserRole::User;
  if (method.ends_with("/CreateToken")) return UserRole::Admin;
  const std::string_view name = method.substr(method.rfind('/') + 1);
  const bool changes = !name.starts_with("Get") && !name.starts_with("List");
  return method.starts_with("/muster.v1.NodeService/") && changes ? UserRole::Operator
                                                                  : UserRole::Viewer;
}
// Every method of JobService is about somebody's jobs.
bool is_about_jobs(std::string_view method) { return method.starts_with("/muster.v1.JobService/"); }

TEST(Access, EveryRoleByEveryMethodByOwner) {
  const AccessPolicy given = policy();
  const Access access("root", given, nullptr);
  std::size_t checked = 0;
  for (const CallRule& rule : call_rules()) {
    if (rule.caller != CallerRole::User && rule.caller != CallerRole::NodeOrUser) continue;
    const std::string method(rule.method);
    for (const auto& [name, role] : given.users) {
      const bool callable = role >= least_of(method);
      EXPECT_EQ(access.may_call(user(name), method).has_value(), callable) << name << method;
      const JobAccess job = access.of_call(false, user(name), method);
      EXPECT_TRUE(job.check("j1", name)) << name << method;
      const bool all = !is_about_jobs(method) || role >= UserRole::Operator;
      for (const char* owner : {"alice", "root", ""}) {
        EXPECT_EQ(job.may(owner), all) << name << method << owner;
        const auto allowed = job.check("j1", owner);
        EXPECT_EQ(allowed.has_value(), all) << name << method << owner;
        if (!allowed) {
          EXPECT_EQ(allowed.error().code, ErrorCode::NotAllowed);
          EXPECT_NE(allowed.error().message.find("job 'j1': it is of user"), std::string::npos)
              << allowed.error().message;
        }
        ++checked;
      }
    }
    EXPECT_TRUE(access.of_call(true, {}, method).may("alice")) << method;
  }
  EXPECT_GT(checked, 200U);
}

TEST(Access, TheSocketAndNobody) {
  const Access access("root", {}, nullptr);
  const JobAccess socket = access.of_call(true, {}, "/muster.v1.JobService/CancelJob");
  EXPECT_EQ(socket.user(), "root");
  EXPECT_EQ(socket.by(), "root");
  EXPECT_TRUE(socket.is_socket());
  const JobAccess nobody = access.of_call(false, {}, "/muster.v1.JobService/CancelJob");
  for (const char* owner : {"", "root", "alice"}) EXPECT_FALSE(nobody.may(owner));
  const JobAccess own = access.of_call(false, user("root"), "/muster.v1.JobService/CancelJob");
  EXPECT_TRUE(own.may(""));  // of an old journal
  EXPECT_EQ(own.by(), "root");
}

TEST(Access, WhatOthersMayIsForThatAlone) {
  Access access("root", {.others_may = {JobRight::Logs}}, nullptr);
  const auto may = [&](const char* method) {
    return access.of_call(false, user("bob"), method).may("alice");
  };
  EXPECT_TRUE(may("/muster.v1.JobService/ReadLogs"));
  EXPECT_FALSE(may("/muster.v1.JobService/GetJob"));
  EXPECT_FALSE(may("/muster.v1.JobService/CancelJob"));
  const JobAccess before = access.of_call(false, user("bob"), "/muster.v1.JobService/ReadLogs");
  access.replace({});
  EXPECT_FALSE(may("/muster.v1.JobService/ReadLogs"));
  EXPECT_TRUE(before.may("alice"));  // an open call goes on as it began
}

TEST(Access, AnOpenCallByTheNextPolicy) {
  AccessPolicy given = policy();
  given.others_may = {JobRight::Logs};
  Access access("root", given, nullptr);
  const auto begun = [&](const std::string& name) {
    return access.of_call(false, user(name), "/muster.v1.JobService/ReadLogs");
  };
  const JobAccess olga = begun("olga"), uwe = begun("uwe");
  const JobAccess socket = access.of_call(true, std::nullopt, "/muster.v1.JobService/ReadLogs");
  const JobAccess node = access.of_call(
      false, pki::Identity{.cluster = "c0ffee", .role = pki::Role::Node, .name = "n"},
      "/muster.v1.JobService/ReadLogs");
  EXPECT_TRUE(olga.may_all() && uwe.may_all() && socket.may_all());
  access.replace({.users = {{"olga", UserRole::Viewer}}});
  EXPECT_TRUE(uwe.may_all()) << "it keeps the policy of its begin";
  EXPECT_TRUE(access.again(socket).may_all());
  EXPECT_FALSE(access.again(node).may_all());
  for (const auto& [before, name] : {std::pair{olga, "olga"}, std::pair{uwe, "uwe"}}) {
    const JobAccess now = access.again(before);
    EXPECT_FALSE(now.may_all());
    EXPECT_FALSE(now.is_operator());
    EXPECT_TRUE(now.may(name)) << "its own job";
    EXPECT_FALSE(now.may("alice"));
  }
}

}  // namespace
}  // namespace muster::controller
