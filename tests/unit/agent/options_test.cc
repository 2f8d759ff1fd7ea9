#include "agent/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/support/credentials.h"

namespace muster::agent {
namespace {

Result<std::optional<CommandLine>> parse(std::vector<std::string> more) {
  std::vector<std::string> words{"muster-agent", "--controller", "unix:/s"};
  if (std::ranges::find(more, "--name") == more.end()) words.insert(words.end(), {"--name", "n1"});
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

// Regression: such bytes went into the Hello, which the controller could not read, and the agent
// tried to connect for ever.
TEST(CommandLine, BytesThatAreNoTextAreAUsageError) {
  EXPECT_TRUE(parse({"--label", "rack=m\xc3\xbcnchen", "--address", "127.0.0.1"}));
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--label", "rack=\xff"},
                                              {"--address", "10.0.0.\xff"},
                                              {"--name", "n\xff"}}) {
    const auto line = parse(bad);
    ASSERT_FALSE(line) << bad[0];
    EXPECT_EQ(line.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_NE(
      parse({"--address", "10.0.0.\xff"}).error().message.find("'10.0.0.?' is not UTF-8 text"),
      std::string::npos);
}

TEST(CommandLine, WhereTheDevicesAreFrom) {
  const auto plain = parse({});
  ASSERT_TRUE(plain && *plain) << plain.error().message;
  EXPECT_FALSE((*plain)->devices);
  EXPECT_TRUE((*plain)->devices_from.empty());
  EXPECT_EQ((*plain)->probe_interval, std::chrono::seconds(30));
  const auto slots = parse({"--devices", "8", "--probe-interval", "250ms"});
  ASSERT_TRUE(slots && *slots);
  EXPECT_EQ((*slots)->devices, 8U);
  EXPECT_EQ((*slots)->probe_interval, std::chrono::milliseconds(250));
  const auto written = parse({"--devices-from", "cards.txt", "--probe-interval", "0"});
  ASSERT_TRUE(written && *written);
  EXPECT_EQ((*written)->devices_from, "cards.txt");
  EXPECT_EQ((*written)->probe_interval, Duration::zero());
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"--devices", "8", "--devices-from", "x"},
        {"--probe-interval", "-1"},
        {"--probe-interval", "often"},
        {"--probe-interval", "2d"}}) {
    const auto line = parse(bad);
    ASSERT_FALSE(line) << bad[0];
    EXPECT_EQ(line.error().code, ErrorCode::InvalidArgument);
  }
  // Regression: it was read as seconds, while every other flag of this kind requires its unit.
  EXPECT_NE(
      parse({"--probe-interval", "30"})
          .error()
          .message.find("--probe-interval: '30' is a number without a unit; write 30s, 30m or 30h"),
      std::string::npos);
}

// --check-config did not find them, and the first two were found by nobody.
TEST(CommandLine, WrongValuesAreFoundBeforeAnythingStarts) {
  const auto message = [](const std::vector<std::string>& words) {
    const auto line = parse(words);
    EXPECT_FALSE(line) << words[0];
    return line ? std::string() : line.error().message;
  };
  EXPECT_NE(message({"--min-free", "-1"}).find("'-1' is no size"), std::string::npos);
  for (const char* option : {"--state-dir", "--credentials", "--join", "--devices-from", "--worker",
                             "--log-file", "--cgroup", "--container-tool"})
    EXPECT_NE(
        message({option, "~/x"}).find(std::string(option) + ": '~/x': '~' is not expanded here"),
        std::string::npos)
        << option;
  EXPECT_EQ(message({"--cgroup", "atuo"}),
            "reading the command line: --cgroup 'atuo': give 'auto', 'none' or an absolute "
            "directory");
  EXPECT_EQ(message({"--cgroup", "/proc/self"}),
            "reading the command line: --cgroup '/proc/self': '/proc/self' is no directory of a "
            "cgroup v2 tree; give a directory of a cgroup v2 tree that this user may write, or "
            "none");
  for (const char* sound : {"auto", "none"}) EXPECT_TRUE(parse({"--cgroup", sound}));
}

TEST(CommandLine, WhereANodeJoins) {
  const auto plain = parse({"--credentials", "c.pem"});
  ASSERT_TRUE(plain && *plain) << plain.error().message;
  EXPECT_TRUE((*plain)->enrol.empty());
  const auto joins =
      parse({"--state-dir", "/s", "--enrol", "10.0.0.1:7071", "--join", "join.token"});
  ASSERT_TRUE(joins && *joins) << joins.error().message;
  EXPECT_EQ((*joins)->enrol, "10.0.0.1:7071");
  EXPECT_EQ((*joins)->join, "join.token");
  EXPECT_EQ((*joins)->credentials, "/s/credentials.pem");
  const auto named = parse({"--enrol", "10.0.0.1:7071", "--credentials", "c.pem"});
  ASSERT_TRUE(named && *named);
  EXPECT_EQ((*named)->credentials, "c.pem");
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--join", "join.token"},
                                              {"--enrol", "unix:/s"},
                                              {"--enrol", "10.0.0.1"},
                                              {"--enrol", "10.0.0.1:x"}}) {
    const auto line = parse(bad);
    ASSERT_FALSE(line) << bad[0];
    EXPECT_EQ(line.error().code, ErrorCode::InvalidArgument);
  }
}

TEST(CommandLine, AFailpointIsAStepOfAStart) {
  const auto with = [](const char* text) {
    ::setenv("MUSTER_FAILPOINT", text, 1);
    auto line = parse({});
    ::unsetenv("MUSTER_FAILPOINT");
    return line;
  };
  EXPECT_FALSE((*parse({}))->kill_after);
  EXPECT_FALSE((*with(""))->kill_after);
  for (const StartStepRow& row : kStartSteps) {
    const auto line = with(("start:" + std::string(row.word) + ":kill").c_str());
    ASSERT_TRUE(line && *line) << row.word;
    EXPECT_EQ((*line)->kill_after, row.step);
  }
  for (const char* bad : {"start", "start::kill", "start:kill", "start:lunch:kill",
                          "start:check:hang", "stop:check:kill", "start:check:kill:"}) {
    const auto line = with(bad);
    ASSERT_FALSE(line) << bad;
    EXPECT_EQ(line.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(line.error().message,
              "reading the environment: MUSTER_FAILPOINT='" + std::string(bad) +
                  "' is not 'start:STEP:kill', where STEP is one of check, checkpoints, "
                  "directories, inputs, code, files, fetch, links, container, record, secrets, "
                  "spawn");
  }
}

TEST(CommandLine, NamesHaveTheRuleOfNodes) {
  EXPECT_TRUE(parse({"--name", "gpu-1.rack_2"}));
  for (const char* bad : {"", "-a", "a b", "\xc3\xa4"}) EXPECT_FALSE(parse({"--name", bad})) << bad;
}

// Regression: the agent connected with them, and the controller's refusal named no file.
TEST(EndpointSource, OnlyTheNodesOwnCredentialsCount) {
  std::string pattern = (std::filesystem::temp_directory_path() / "credentials.XXXXXX").string();
  const std::filesystem::path dir = ::mkdtemp(pattern.data());
  const auto authority = pki::Authority::make("c0ffee", system_clock().now().wall);
  ASSERT_TRUE(authority) << authority.error().message;
  const auto found = [&](pki::Role role, const char* name, std::string controller) {
    const std::filesystem::path file = dir / name;
    if (!std::filesystem::exists(file)) {
      const auto made =
          test::credentials(*authority, {.cluster = "c0ffee", .role = role, .name = name});
      EXPECT_TRUE(pki::create_credentials(file, made));
    }
    return endpoint_source(
        {.controller = std::move(controller), .credentials = file, .name = NodeName("n1")})();
  };
  const auto own = found(pki::Role::Node, "n1", "127.0.0.1:1");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->credentials->identity.name, "n1");
  const auto refused = [&](pki::Role role, const char* name, const std::string& who) {
    const auto endpoint = found(role, name, "127.0.0.1:1");
    const std::string file = (dir / name).string();
    ASSERT_FALSE(endpoint);
    EXPECT_EQ(endpoint.error().code, ErrorCode::NotAllowed);
    EXPECT_EQ(
        endpoint.error().message,
        "the credentials of '" + file + "' are of " + who +
            "; an agent needs those of node 'n1': on the controller's machine, muster cert issue "
            "--node n1 -o new-n1.pem makes them");
  };
  refused(pki::Role::Node, "n2", "node 'n2'");
  refused(pki::Role::User, "ann", "user 'ann'");
  EXPECT_TRUE(found(pki::Role::User, "ann", "unix:/s")) << "a socket needs none";
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace muster::agent
