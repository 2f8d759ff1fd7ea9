#include "controller/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster::controller {
namespace {

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "muster-controller");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Config, DefaultsFollowTheStateDirectory) {
  const CommandLine line = parse({"--state-dir", "/s"});
  ASSERT_EQ(line.exit_code, -1) << line.text;
  EXPECT_EQ(line.config.listen, std::vector<std::string>{"unix:/s/controller.sock"});
  EXPECT_EQ(line.config.endpoint_file, "/s/endpoint.json");
}

// Callers of this machine need no certificate: there is always a socket.
TEST(Config, TcpIsServedInAdditionToASocket) {
  const CommandLine line = parse({"--state-dir", "/s", "--listen", "0.0.0.0:7070"});
  ASSERT_EQ(line.exit_code, -1) << line.text;
  EXPECT_EQ(line.config.listen,
            (std::vector<std::string>{"0.0.0.0:7070", "unix:/s/controller.sock"}));
  const std::string deep = "/" + std::string(110, 'd');
  const CommandLine lacks = parse({"--state-dir", deep.c_str(), "--listen", "0.0.0.0:7070"});
  EXPECT_EQ(lacks.exit_code, 64);
  EXPECT_NE(lacks.text.find("107"), std::string::npos) << lacks.text;
  EXPECT_EQ(parse({"--state-dir", deep.c_str(), "--listen", "unix:/x"}).exit_code, -1);
}

TEST(Config, TheEnrolmentPortIsOverTcp) {
  EXPECT_TRUE(parse({"--state-dir", "/s"}).config.enrol.empty());
  const auto with_enrol = [](const char* listen, const char* enrol) {
    return parse({"--state-dir", "/s", "--listen", listen, "--enrol", enrol});
  };
  const CommandLine line = with_enrol("0.0.0.0:7070", "0.0.0.0:7071");
  ASSERT_EQ(line.exit_code, -1) << line.text;
  EXPECT_EQ(line.config.enrol, "0.0.0.0:7071");
  for (const char* wrong : {"unix:/x", "nowhere", "10.0.0.1:x"}) {
    const CommandLine bad = with_enrol("0.0.0.0:7070", wrong);
    EXPECT_EQ(bad.exit_code, 64) << wrong;
    EXPECT_NE(bad.text.find("--enrol"), std::string::npos) << bad.text;
  }
  for (const CommandLine& no_tcp : {with_enrol("unix:/x", "0.0.0.0:7071"),
                                    parse({"--state-dir", "/s", "--enrol", "0.0.0.0:7071"})}) {
    EXPECT_EQ(no_tcp.exit_code, 64);
    EXPECT_NE(no_tcp.text.find("--listen HOST:PORT"), std::string::npos) << no_tcp.text;
  }
}

TEST(Config, TheEnrolmentPortIsNotTheOneOfListen) {
  struct Pair {
    const char* listen;
    const char* enrol;
  };
  const auto text_of = [](const Pair& pair) {
    return parse({"--state-dir", "/s", "--listen", "127.0.0.1:1", "--listen", pair.listen,
                  "--enrol", pair.enrol})
        .text;
  };
  for (const Pair& both : {Pair{"10.0.0.1:7070", "10.0.0.1:7070"}, Pair{"[::1]:70", "[::1]:70"},
                           Pair{"0.0.0.0:70", "10.0.0.1:70"}, Pair{"head:70", "[::]:70"}})
    EXPECT_EQ(text_of(both), "muster-controller: --enrol '" + std::string(both.enrol) +
                                 "': --listen '" + both.listen +
                                 "' takes the same port; give one of them another one\n");
  for (const Pair& apart : {Pair{"0.0.0.0:0", "0.0.0.0:0"}, Pair{"10.0.0.1:70", "10.0.0.1:71"},
                            Pair{"10.0.0.1:70", "10.0.0.2:70"}})
    EXPECT_EQ(text_of(apart), "") << apart.listen << " " << apart.enrol;
}

TEST(Config, TheLoginSocketIsForEverybodyAndForTcp) {
  EXPECT_TRUE(parse({"--state-dir", "/s"}).config.login_socket.empty());
  const CommandLine line = parse({"--state-dir", "/s", "--listen", "0.0.0.0:7070", "--login-socket",
                                  "/run/muster/login.sock"});
  ASSERT_EQ(line.exit_code, -1) << line.text;
  EXPECT_EQ(line.config.login_socket, "/run/muster/login.sock");
  const std::string deep = "/" + std::string(120, 'd');
  for (const char* wrong : {"login.sock", "/s/login.sock", deep.c_str()}) {
    const CommandLine bad =
        parse({"--state-dir", "/s", "--listen", "0.0.0.0:7070", "--login-socket", wrong});
    EXPECT_EQ(bad.exit_code, 64) << wrong;
    EXPECT_NE(bad.text.find("--login-socket"), std::string::npos) << bad.text;
  }
  const CommandLine no_tcp = parse({"--state-dir", "/s", "--login-socket", "/run/m/login.sock"});
  EXPECT_EQ(no_tcp.exit_code, 64);
  EXPECT_NE(no_tcp.text.find("--listen HOST:PORT"), std::string::npos) << no_tcp.text;
}

TEST(Config, ValuesAreUnderstood) {
  const CommandLine line =
      parse({"--state-dir", "/s", "--listen", "127.0.0.1:1", "--listen", "unix:/x",
             "--archive-after", "0", "--heartbeat-interval", "250ms", "--port-range", "30000-30010",
             "--log-quota", "10GB", "--access", "/etc/muster/access.yaml"});
  ASSERT_EQ(line.exit_code, -1) << line.text;
  EXPECT_EQ(line.config.listen.size(), 2u);
  EXPECT_EQ(line.config.archive_after, Duration::zero());
  EXPECT_EQ(line.config.archive_keep, std::chrono::hours(24 * 90));
  EXPECT_EQ(parse({"--state-dir", "/s", "--archive-keep", "30d"}).config.archive_keep,
            std::chrono::hours(24 * 30));
  EXPECT_EQ(line.config.heartbeat_interval, std::chrono::milliseconds(250));
  EXPECT_EQ(line.config.port_first, 30'000);
  EXPECT_EQ(line.config.port_last, 30'010);
  EXPECT_EQ(line.config.log_quota, 10ull << 30);
  EXPECT_EQ(line.config.access_file, "/etc/muster/access.yaml");
}

// As the start does it, with the same sentence: it is asked before a controller that runs is
// stopped.
TEST(Config, ACheckReadsTheAccessFile) {
  std::string dir = (std::filesystem::temp_directory_path() / "configXXXXXX").string();
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  const std::string file = dir + "/access.yaml";
  const auto check = [&] {
    return parse({"--state-dir", "/s", "--access", file.c_str(), "--check-config"});
  };
  const CommandLine missing = check();
  EXPECT_EQ(missing.exit_code, 64);
  EXPECT_NE(missing.text.find("reading the access file"), std::string::npos) << missing.text;
  std::ofstream(file) << "users: {ann: king}\n";
  const CommandLine wrong = check();
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_TRUE(wrong.text.starts_with("muster-controller: " + file + ":1:14: ")) << wrong.text;
  EXPECT_EQ(parse({"--state-dir", "/s", "--access", file.c_str()}).exit_code, -1);
  std::ofstream(file) << "users: {ann: admin}\n";
  const CommandLine right = check();
  EXPECT_EQ(right.exit_code, 0) << right.text;
  std::filesystem::remove_all(dir);
}

TEST(Config, TheDirectoryOfOutputs) {
  EXPECT_EQ(parse({"--state-dir", "/s"}).config.outputs_root, "");
  EXPECT_EQ(parse({"--state-dir", "/s", "--outputs-root", "/nfs//out/x/.."}).config.outputs_root,
            "/nfs/out");
  EXPECT_EQ(parse({"--state-dir", "/s", "--outputs-root", "/nfs/out/"}).config.outputs_root,
            "/nfs/out");
}

TEST(Config, MistakesAreUsageWithASentence) {
  const std::vector<std::vector<const char*>> wrong = {
      {},
      {"--state-dir", "/s", "--nonsense"},
      {"--state-dir", "/s", "--port-range", "9-4"},
      {"--state-dir", "/s", "--archive-after", "10"},
      {"--state-dir", "/s", "--heartbeat-interval", "1h"},
      {"--state-dir", "/s", "--archive-keep", "1d"},
      {"--state-dir", "/s", "--outputs-root", "out"},
      {"--state-dir", "/s", "--outputs-root", "/"},
      {"--state-dir", "/s", "--outputs-root", "/a\nb"},
      {"--state-dir", "/s", "--listen", "nowhere"},
      {"--state-dir", "/s", "--log-quota", "-1"},
      {"--state-dir", "/s", "--log-quota", "-1GB"},
      {"--state-dir", "~/s"},
      {"--state-dir", "/s", "--access", "~/access.yaml"},
      {"--state-dir", "/s", "--log-file", "~/log"},
      {"--state-dir", "/s", "--endpoint-file", "~/e"}};
  for (const auto& arguments : wrong) {
    const CommandLine line = parse(arguments);
    EXPECT_EQ(line.exit_code, 64);
    EXPECT_TRUE(line.text.starts_with("muster-controller: ")) << line.text;
  }
  EXPECT_EQ(parse({"--help"}).exit_code, 0);
  EXPECT_EQ(parse({"--version"}).text, std::string(version()) + "\n");
}

}  // namespace
}  // namespace muster::controller
