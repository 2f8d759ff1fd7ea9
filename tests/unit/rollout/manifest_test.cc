// The manifest, the unit's text, and releases in archives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "deploy/rollout/bundle.h"
#include "deploy/rollout/manifest.h"
#include "deploy/rollout/packaged_units.h"
#include "deploy/rollout/programs.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Manifest example() {
  const Deployed one{.login = {.host = "h1", .port = 22, .user = "root"},
                     .places = {.prefix = "/opt/muster", .state_dir = "/var/lib/muster/agent"},
                     .versions = {"0.1.0"},
                     .config_sha = "x",
                     .whole = true};
  return {.cluster = "prod",
          .by = "ann@laptop",
          .at = "2026-11-26T10:00:00Z",
          .controller = one,
          .agents = {{"n1", one}}};
}

TEST(Manifest, ReadsWhatItWrites) {
  const auto read = parse_manifest(manifest_text(example()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cluster, "prod");
  EXPECT_EQ(read->agents.at("n1").login, example().agents.at("n1").login);
  EXPECT_EQ(read->agents.at("n1").places.prefix, "/opt/muster");
  EXPECT_EQ(read->agents.at("n1").versions.back(), "0.1.0");
}

TEST(Manifest, WhatMakesNoSenseIsAnError) {
  for (const char* text : {"", "[]", "{}", "{\"version\": 2}", "{\"version\": 1}", "{\"version\""})
    EXPECT_FALSE(parse_manifest(text)) << text;
  Manifest bad = example();
  bad.agents["n1"].places.prefix = "/opt/../etc";
  EXPECT_FALSE(parse_manifest(manifest_text(bad)));
  bad = example();
  bad.agents["n1"].login.host = "-oProxyCommand=x";
  EXPECT_FALSE(parse_manifest(manifest_text(bad)));
  bad = example();
  bad.controller.versions = {"../.."};
  EXPECT_FALSE(parse_manifest(manifest_text(bad)));
}

TEST(Unit, QuotesWhatSystemdWouldExpand) {
  const Wanted wanted{.role = Role::Agent,
                      .name = "n1",
                      .login = {},
                      .state_dir = {},
                      .address = "head:7070",
                      .options = {"--label=a=100% \"x\" $HOME"}};
  const std::string text =
      config_text(wanted, {.prefix = "/opt/muster", .state_dir = "/s", .systemd = true});
  EXPECT_THAT(text, HasSubstr("\"--label=a=100%% \\\"x\\\" $$HOME\"\n"));
  EXPECT_THAT(text, HasSubstr("ExecStart=\"/opt/muster/current/bin/muster-agent\" "));
  EXPECT_THAT(text, HasSubstr("KillMode=process\nDelegate=yes\n"));
  EXPECT_THAT(text, HasSubstr(std::string(kUnitMark)));
}

// Where `muster login` looks. Another user than root cannot make that place.
TEST(Unit, ARootsControllerWithRolesHasALoginSocket) {
  Wanted wanted{.role = Role::Controller,
                .name = "controller",
                .address = "0.0.0.0:7070",
                .options = {"--access=/etc/access.yaml"}};
  Places places{.prefix = "/opt/muster", .state_dir = "/s", .systemd = true, .root = true};
  const std::string usual = "--login-socket=/run/muster/login.sock";
  EXPECT_THAT(command_words(wanted, places), Contains(usual));
  EXPECT_THAT(config_text(wanted, places),
              HasSubstr("RuntimeDirectory=muster\nRuntimeDirectoryMode=0755\n"));
  wanted.login_socket = "none";
  EXPECT_THAT(command_words(wanted, places), Not(Contains(HasSubstr("--login-socket"))));
  places.root = false;
  wanted.login_socket = "/data/run/login.sock";
  EXPECT_THAT(command_words(wanted, places), Contains("--login-socket=/data/run/login.sock"));
  wanted.login_socket = {};
  EXPECT_THAT(command_words(wanted, places), Not(Contains(HasSubstr("--login-socket"))));
  places.root = true;
  wanted.options = {};  // everybody could submit
  EXPECT_THAT(command_words(wanted, places), Not(Contains(HasSubstr("--login-socket"))));
  wanted.options = {"--access=/etc/access.yaml"};
  wanted.role = Role::Agent;
  EXPECT_THAT(command_words(wanted, places), Not(Contains(HasSubstr("--login-socket"))));
}

// Both are made of deploy/package/*.service; what is only of the package stays away.
TEST(Unit, IsThePackagedOneWithAnotherCommandLine) {
  const Places places{.prefix = "/opt/muster", .state_dir = "/data/muster", .systemd = true};
  for (const Role role : {Role::Controller, Role::Agent}) {
    const Wanted wanted{.role = role, .name = "n", .address = "h:1"};
    const std::string text = config_text(wanted, places);
    const std::string packaged(packaged_unit(role));
    for (const char* line :
         {"Restart=always\n", "RestartSec=2\n", "RestartPreventExitStatus=64",
          "TasksMax=infinity\n", "LimitNOFILE=1024:1048576\n", "StartLimitIntervalSec=0\n",
          "\n[Install]\nWantedBy=multi-user.target\n"}) {
      EXPECT_THAT(packaged, HasSubstr(line));
      EXPECT_THAT(text, HasSubstr(line));
    }
    EXPECT_THAT(text, HasSubstr("[Unit]\n" + std::string(kUnitMark) + "\n"));
    for (const char* other :
         {"User=", "Documentation=", "StateDirectory", "ProtectHome", "/usr/bin/"})
      EXPECT_THAT(text, Not(HasSubstr(other)));
    EXPECT_EQ(text.find("ExecStart="), text.rfind("ExecStart="));
  }
}

// One member of a ustar archive.
std::string member(const std::string& name, const std::string& bytes) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  const auto octal = [](std::size_t value, int digits) {
    std::string text;
    for (int i = digits - 1; i >= 0; --i)
      text += static_cast<char>('0' + ((value >> (3 * static_cast<unsigned>(i))) & 7U));
    return text;
  };
  put(0, name);
  put(124, octal(bytes.size(), 11));
  header[156] = '0';
  put(257, "ustar");
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string elf(unsigned char machine) {
  std::string bytes = std::string(
                          "\x7f"
                          "ELF\x02\x01",
                          6) +
                      std::string(100, '\0');
  bytes[18] = static_cast<char>(machine);
  return bytes;
}

class Bundles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/bundle.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string write(const std::string& tar) {
    const std::string path = (dir_ / ("b" + std::to_string(++count_) + ".tar.gz")).string();
    const gzFile file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, tar.data(), static_cast<unsigned>(tar.size()));
    ::gzclose(file);
    return path;
  }
  static std::string release(const std::string& version, const std::string& arch,
                             unsigned char machine) {
    std::string tar;
    for (const char* name : {"muster", "muster-agent", "muster-controller", "muster-worker"})
      tar += member("muster-" + version + "-" + arch + "/bin/" + name, elf(machine));
    return tar + member("muster-" + version + "-" + arch + "/README", "x") +
           std::string(1024, '\0');
  }

 private:
  std::filesystem::path dir_;
  int count_ = 0;
};

TEST_F(Bundles, OneForEachArchitecture) {
  const auto programs = Programs::from_bundles(
      {write(release("1.2", "x86_64", 62)), write(release("1.2", "aarch64", 183))});
  ASSERT_TRUE(programs) << programs.error().message;
  EXPECT_EQ(programs->version(), "1.2");
  EXPECT_EQ(programs->architectures(), "aarch64, x86_64");
  EXPECT_EQ(programs->bytes("aarch64", "muster").raw(), elf(183));
}

// The names of deploy/build-release.
TEST_F(Bundles, PackagesHaveDebiansNamesOfArchitectures) {
  const auto programs = Programs::from_bundles(
      {write(release("0.1.0", "amd64", 62)), write(release("0.1.0", "arm64", 183))});
  ASSERT_TRUE(programs) << programs.error().message;
  EXPECT_EQ(programs->version(), "0.1.0");
  EXPECT_EQ(programs->architectures(), "aarch64, x86_64");
  const auto wrong = Programs::from_bundles({write(release("0.1.0", "arm64", 62))});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("it is for x86_64"));
}

TEST_F(Bundles, MistakesHaveASentence) {
  const auto error = [&](const std::vector<std::string>& files) {
    const auto programs = Programs::from_bundles(files);
    return programs ? std::string("none") : programs.error().message;
  };
  EXPECT_THAT(error({write(release("1.2", "x86_64", 183))}), HasSubstr("it is for aarch64"));
  EXPECT_THAT(error({write(release("1.2", "x86_64", 62)), write(release("1.3", "aarch64", 183))}),
              HasSubstr("it has version 1.3, another one has 1.2"));
  const std::string whole = release("1.2", "x86_64", 62);
  EXPECT_THAT(error({write(whole.substr(0, 700))}), HasSubstr("it ends in the middle"));
  EXPECT_THAT(error({write(whole.substr(0, 1024))}), HasSubstr("it has no end"));
  EXPECT_THAT(error({write("text" + whole)}), HasSubstr("a header in it is damaged"));
  EXPECT_THAT(error({write(std::string(1024, '\0'))}), HasSubstr("it has no muster-VERSION-ARCH"));
  EXPECT_THAT(
      error({write(member("muster-1-x86_64/bin/muster", elf(62)) + std::string(1024, '\0'))}),
      HasSubstr("'muster-agent' is missing"));
}

}  // namespace
}  // namespace muster::rollout
