// --install-key: which file's key, what counts as one, and what it does to authorized_keys.
#include "deploy/rollout/key_install.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

using testing::HasSubstr;

const std::string kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

class KeyInstallTest : public testing::Test {
 protected:
  KeyInstallTest() : home_before_(std::getenv("HOME") == nullptr ? "" : std::getenv("HOME")) {
    ::setenv("HOME", local_.dir().c_str(), 1);
  }
  ~KeyInstallTest() override { ::setenv("HOME", home_before_.c_str(), 1); }

  [[nodiscard]] std::filesystem::path ssh_dir() const { return local_.dir() / ".ssh"; }
  [[nodiscard]] std::string keys() const { return local_.read(ssh_dir() / "authorized_keys"); }
  [[nodiscard]] static unsigned mode_of(const std::filesystem::path& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions()) & 07777U;
  }
  std::string install(const hosts::Login& login) {
    ssh::NoPrompts nobody;
    auto host = host_over(local_, nobody);
    EXPECT_TRUE(host);
    auto done = install_.install(*host, login);
    return done ? *done : done.error().message;
  }

  LocalHost local_;
  KeyInstall install_{""};

 private:
  std::string home_before_;
};

TEST_F(KeyInstallTest, AddsOneLineOnceAndMakesTheFile) {
  local_.write(local_.dir() / "id.pub", kKey + " ann@desk\n");
  EXPECT_THAT(install({.identity = "~/id"}), HasSubstr("was added"));
  EXPECT_EQ(keys(), kKey + " ann@desk\n");
  EXPECT_EQ(mode_of(ssh_dir()), 0700U);
  EXPECT_EQ(mode_of(ssh_dir() / "authorized_keys"), 0600U);
  local_.write(local_.dir() / "id.pub", kKey + " another comment\n");
  EXPECT_THAT(install({.identity = "~/id"}), HasSubstr("already"));
  EXPECT_EQ(keys(), kKey + " ann@desk\n");
}

TEST_F(KeyInstallTest, LeavesTheOtherLinesAsTheyAre) {
  const std::string others = "# " + kKey + "\nssh-ed25519 AAAA other";  // no line end
  local_.write(ssh_dir() / "authorized_keys", others);
  local_.write(ssh_dir() / "id_ecdsa.pub", kKey + " it's $HOME\n");
  EXPECT_THAT(install({}), HasSubstr("was added"));
  EXPECT_EQ(keys(), others + "\n" + kKey + " it's $HOME\n");
}

TEST_F(KeyInstallTest, AKeyBehindOptionsIsThere) {
  const std::string line = "from=\"10.0.0.1\" " + kKey + "\n";
  local_.write(ssh_dir() / "authorized_keys", line);
  local_.write(ssh_dir() / "id_rsa.pub", kKey);
  EXPECT_THAT(install({}), HasSubstr("already"));
  EXPECT_EQ(keys(), line);
}

TEST_F(KeyInstallTest, WithoutAKeyNothingIsMade) {
  EXPECT_THAT(install({}), HasSubstr("there is none of ~/.ssh/id_ed25519.pub"));
  EXPECT_THAT(install({.identity = "/nowhere/id"}), HasSubstr("/nowhere/id.pub"));
  EXPECT_FALSE(std::filesystem::exists(ssh_dir() / "authorized_keys"));
}

TEST(PublicKeyLine, IsOneLineWithOneKey) {
  EXPECT_EQ(*public_key_line(kKey + " a comment\r\n"), kKey + " a comment");
  for (const std::string& wrong :
       {std::string(), std::string("ssh-ed25519"), kKey + "\n" + kKey + "\n",
        "command=\"x\" " + kKey, "ssh-rsa" + kKey.substr(11), kKey + " a\tb", kKey + " \x1b[2J",
        std::string("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"
                    "-----END OPENSSH PRIVATE KEY-----\n")})
    EXPECT_FALSE(public_key_line(wrong)) << wrong;
}

}  // namespace
}  // namespace muster::rollout
