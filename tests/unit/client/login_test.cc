// Where a login finds its controller, and where its files are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "client/commands/call/login_files.h"
#include "client/commands/login/controller_address.h"

namespace muster::client {
namespace {

TEST(LoginAddress, WhatAnotherMachineReaches) {
  EXPECT_EQ(controller_address({}, ""), "");
  EXPECT_EQ(controller_address({"10.0.0.1:70"}, ""), "10.0.0.1:70");
  EXPECT_EQ(controller_address({"0.0.0.0:70"}, ""), "127.0.0.1:70");
  EXPECT_EQ(controller_address({"[::]:70"}, ""), "[::1]:70");
  EXPECT_EQ(controller_address({"0.0.0.0:70"}, "head"), "head:70");
  EXPECT_EQ(controller_address({"[::]:70"}, "[fd00::1]"), "[fd00::1]:70");
  EXPECT_EQ(controller_address({"127.0.0.1:70", "10.0.0.1:71"}, "head"), "10.0.0.1:71");
  EXPECT_EQ(controller_address({"127.0.0.1:70", "10.0.0.1:71"}, ""), "127.0.0.1:70");
  EXPECT_EQ(controller_address({"127.0.0.1:70"}, "head"), "127.0.0.1:70");
  EXPECT_EQ(controller_address({"127.0.0.1:70", "10.0.0.1:71"}, "127.0.0.1"), "127.0.0.1:70");
  EXPECT_EQ(host_of("[fd00::1]:70"), "[fd00::1]");
}

// Sets a variable for a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() { ::setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(LoginFiles, TheirPlace) {
  const Variable home("HOME", "/home/ann"), config("XDG_CONFIG_HOME", ""),
      named("MUSTER_LOGIN_DIR", "");
  EXPECT_EQ(login_files()->dir, "/home/ann/.config/muster");
  {
    const Variable own("XDG_CONFIG_HOME", "/home/ann/cfg");
    EXPECT_EQ(login_files()->dir, "/home/ann/cfg/muster");
    const Variable other("MUSTER_LOGIN_DIR", "/srv/ann");
    EXPECT_EQ(login_files()->dir, "/srv/ann");
    EXPECT_EQ(login_files("/x")->dir, "/x");
  }
  const Variable relative("XDG_CONFIG_HOME", "cfg");
  EXPECT_EQ(login_files()->dir, "/home/ann/.config/muster");
  const Variable nowhere("HOME", "");
  EXPECT_FALSE(login_files().has_value());
}

}  // namespace
}  // namespace muster::client
