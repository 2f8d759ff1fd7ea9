// The check of a host: the script against the sh of this machine, the reader of its output, and
// what is made of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <string>

#include "common/digest/sha256.h"
#include "common/process/identity.h"
#include "common/process/spawn.h"
#include "common/process/tool.h"
#include "deploy/rollout/check_script.h"
#include "deploy/rollout/judge.h"
#include "deploy/rollout/revoked.h"
#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const ProgramSet kPrograms = {{"muster", {sha256_hex("m"), 50 << 20}},
                              {"muster-agent", {sha256_hex("a"), 50 << 20}},
                              {"muster-worker", {sha256_hex("w"), 8 << 20}}};

Wanted wanted() {
  return {.role = Role::Agent,
          .name = "n1",
          .login = {.host = "h1"},
          .state_dir = {},
          .address = "head:7070",
          .options = {}};
}

std::string good_output() {
  return "Welcome to this host!\nbegin 1\nuid 0\nuser root\nhome /r\ntime 1000\narch x86_64\n"
         "kernel Linux\nhostname h1\nsystemd yes\nhave gzip\nhave sha256sum\ncgroup 2\n"
         "prefix /opt/muster\nstate /var/lib/muster/agent\n"
         "prefix-path /opt\nprefix-free 9000000\nprefix-options rw,relatime\nprefix-type "
         "ext2/ext3\n"
         "prefix-writable yes\nstate-path /var/lib\nstate-free 9000000\nstate-options rw\n"
         "state-type ext2/ext3\nstate-writable yes\nway open\nend 1\n";
}

HostCheck good_check() { return *parse_check(good_output()); }

std::vector<Finding> judged(const HostCheck& check, const ProgramSet* programs = &kPrograms,
                            std::chrono::seconds ahead = {}) {
  return judge({.wanted = wanted(),
                .check = check,
                .programs = programs,
                .architectures = "x86_64",
                .clock_ahead = ahead,
                .controller_runs = true});
}

auto stops(const std::string& text) {
  return Contains(AllOf(Field(&Finding::stops, true), Field(&Finding::text, HasSubstr(text))));
}

TEST(CheckScript, RunsInTheShOfThisMachine) {
  process::ToolRunner tools;
  const std::string script = check_script({.wanted = wanted(),
                                           .version = "0.1.0",
                                           .way_host = "127.0.0.1",
                                           .way_port = 1,
                                           .listen_port = 1});
  const auto answers =
      tools.run({{.program = "sh", .args = {"-c", script}}}, process::tool_environment(), {});
  ASSERT_EQ(answers.front().why, "");
  const auto check = parse_check(answers.front().output);
  ASSERT_TRUE(check) << check.error().message << "\n" << answers.front().output;
  EXPECT_EQ(check->kernel, "Linux");
  EXPECT_GT(check->time, 1'600'000'000);
  EXPECT_FALSE(check->running);
  EXPECT_GT(check->prefix_disk.free_kb, 0U);
  EXPECT_NE(check->prefix_disk.options, "");
}

// In systemd's hybrid mode the agent takes the second place.
TEST(CheckScript, CgroupsOfVersion2HaveTwoPlaces) {
  const auto found = [](const std::string& place) {
    const LocalHost local;
    const std::string root = "/sys/fs/cgroup", there = (local.dir() / "cgroup").string();
    std::filesystem::create_directories(there + "/memory");
    if (!place.empty()) local.write(there + place + "/cgroup.controllers", "");
    std::string script = check_script({.wanted = wanted(), .version = "0.1.0", .way_host = {}});
    script.replace(script.find(root), root.size(), there);
    const auto check = parse_check(local.run("sh -s", script).out);
    EXPECT_TRUE(check) << check.error().message;
    return check && check->cgroup2;
  };
  EXPECT_TRUE(found("/."));
  EXPECT_TRUE(found("/unified"));
  EXPECT_FALSE(found(""));
}

// A unit's program needs a label that SELinux lets systemd start.
TEST(CheckScript, SelinuxThatEnforcesIsNoted) {
  const LocalHost local;
  local.program(local.bin("id"), "echo 0\n");
  local.program(local.bin("systemctl"), ":\n");
  const auto findings = [&](const std::string& enforce) {
    const std::string place = "/sys/fs/selinux/enforce";
    const auto there = local.dir() / "enforce";
    std::filesystem::remove(there);
    if (!enforce.empty()) local.write(there, enforce);
    std::string script = check_script({.wanted = wanted(), .version = "0.1.0", .way_host = {}});
    script.replace(script.find(place), place.size(), there.string());
    const auto check = parse_check(local.run("sh -s", script).out);
    EXPECT_TRUE(check && check->systemd);
    EXPECT_EQ(check->selinux_enforcing, enforce == "1");
    return judged(*check);
  };
  const auto noted = Contains(
      AllOf(Field(&Finding::stops, false),
            Field(&Finding::text,
                  HasSubstr("if the daemon does not start, run 'restorecon -R /opt/muster'"))));
  EXPECT_THAT(findings("1"), noted);  // as the kernel writes it, without a line end
  EXPECT_THAT(findings("0"), Not(noted));
  EXPECT_THAT(findings(""), Not(noted));
}

// A unit of a package is in another directory than ours; systemctl names it.
TEST(CheckScript, AUnitThatDeployDidNotWriteIsForeign) {
  const LocalHost local;
  local.program(local.bin("id"), "echo 0\n");
  const auto foreign = [&](const std::string& unit, const std::string& systemctl) {
    const auto file = local.units() / "muster-agent.service";
    std::filesystem::remove(file);
    if (!unit.empty()) local.write(file, unit);
    local.program(local.bin("systemctl"),
                  "case $3 in FragmentPath) echo " + systemctl + ";; *) echo 0;; esac\n");
    const auto output =
        local.run("sh -s", check_script({.wanted = wanted(), .version = "0.1.0", .way_host = {}}));
    const auto check = parse_check(output.out);
    EXPECT_TRUE(check && check->systemd) << output.out << output.err;
    return check && check->config_foreign;
  };
  const std::string own = config_text(wanted(), good_check().places);
  const std::string path = (local.units() / "muster-agent.service").string();
  EXPECT_FALSE(foreign("", "''"));
  EXPECT_FALSE(foreign("", path));  // it was removed, and systemd has not read that yet
  EXPECT_TRUE(foreign("", "/usr/lib/systemd/system/muster-agent.service"));
  EXPECT_TRUE(foreign("[Service]\n", path));
  EXPECT_FALSE(foreign(own, path));
}

TEST(Judge, AHostByTwoNamesIsOneMachine) {
  const auto findings = judge({.wanted = wanted(),
                               .check = good_check(),
                               .programs = &kPrograms,
                               .architectures = "x86_64",
                               .controller_runs = true,
                               .same_machine_as = "n7"});
  EXPECT_THAT(findings, stops("it is the same machine as node 'n7', by another name"));
}

TEST(Revoked, ACertificateThatWasRevokedIsReplaced) {
  const std::string key(64, 'a');
  Surveyed one{.wanted = wanted(),
               .check = *parse_check(good_output().insert(good_output().find("end 1"),
                                                          "credentials-key " + key + "\n"))};
  mark_revoked(one, {{std::string(64, 'b'), "lost"}, {"", "lost"}});
  EXPECT_TRUE(one.steps.none());
  mark_revoked(one, {{key, "it was lost"}});
  EXPECT_TRUE(one.steps.issue && one.steps.start);
  EXPECT_THAT(one.findings.front().text, HasSubstr("revoked ('it was lost')"));
  EXPECT_FALSE(one.stopped());
}

TEST(ParseCheck, AGreetingOfTheLoginShellIsPassedOver) {
  const HostCheck check = good_check();
  EXPECT_EQ(check.places.prefix, "/opt/muster");
  EXPECT_TRUE(check.places.systemd);
  EXPECT_TRUE(check.prefix_disk.has("relatime"));
  EXPECT_FALSE(check.prefix_disk.has("rel"));
}

TEST(ParseCheck, WhatMakesNoSenseIsAnError) {
  const std::string good = good_output();
  EXPECT_FALSE(parse_check(""));
  EXPECT_FALSE(parse_check(good.substr(0, good.size() - 6)));
  EXPECT_FALSE(parse_check(good + "more 1\n"));
  for (const char* line : {"uid x", "prefix opt", "program muster zz", "time 99999999999999999999",
                           "user \x1b[2J", "config-sha 12", "user \xff"}) {
    std::string bad = good;
    bad.insert(bad.find("end 1"), std::string(line) + "\n");
    EXPECT_FALSE(parse_check(bad)) << line;
  }
  EXPECT_FALSE(parse_check("begin 1\n" + std::string(kCheckBytesMost, 'x')));
}

TEST(Judge, AGoodHostHasNoProblem) {
  for (const Finding& each : judged(good_check())) EXPECT_FALSE(each.stops) << each.text;
}

TEST(Judge, EachProblemHasItsSentence) {
  const auto with = [](auto change) {
    HostCheck check = good_check();
    change(check);
    return judged(check);
  };
  EXPECT_THAT(judged(good_check(), nullptr), stops("architecture is x86_64"));
  EXPECT_THAT(with([](HostCheck& c) { c.prefix_disk.options = "rw,noexec"; }), stops("noexec"));
  EXPECT_THAT(with([](HostCheck& c) { c.prefix_disk.options = "ro"; }), stops("read-only"));
  EXPECT_THAT(with([](HostCheck& c) { c.prefix_disk.free_kb = 1000; }), stops("make room"));
  EXPECT_THAT(with([](HostCheck& c) { c.state_disk.free_kb = 1000; }), stops("state directory"));
  EXPECT_THAT(with([](HostCheck& c) { c.prefix_disk.writable = false; }), stops("sudo: true"));
  EXPECT_THAT(with([](HostCheck& c) { c.state_disk.type = "nfs"; }), stops("network disk"));
  EXPECT_THAT(with([](HostCheck& c) { c.sha256sum = false; }), stops("sha256sum"));
  EXPECT_THAT(with([](HostCheck& c) { c.config_foreign = true; }), stops("did not write it"));
  EXPECT_THAT(with([](HostCheck& c) { c.config_foreign = true; }),
              stops("unit 'muster-agent.service'"));
  EXPECT_THAT(with([](HostCheck& c) { c.way = WayState::Refused; }), stops("refuses connections"));
  EXPECT_THAT(with([](HostCheck& c) { c.way = WayState::Silent; }), stops("firewall"));
  EXPECT_THAT(with([](HostCheck& c) { c.way = WayState::NoName; }), stops("does not know"));
  EXPECT_THAT(with([](HostCheck& c) { c.way = WayState::Rejected; }),
              stops("a firewall on the controller's host rejects it; open TCP port 7070 there"));
  EXPECT_THAT(with([](HostCheck& c) { c.way = WayState::Rejected; }), stops("no route"));
  EXPECT_THAT(with([](HostCheck& c) { c.way = WayState::NoRoute; }), stops(": there is no route"));
  EXPECT_THAT(judged(good_check(), &kPrograms, std::chrono::hours(-13)), stops("behind"));
  EXPECT_THAT(judged(good_check(), &kPrograms, std::chrono::hours(1)),
              Contains(Field(&Finding::text, HasSubstr("3600 s ahead"))));
}

// A full disk showed itself by an error of the lock alone.
TEST(Judge, AFullDiskOfADaemonThatRunsIsNoted) {
  HostCheck check = good_check();
  check.running = true;
  check.programs = {{"muster", sha256_hex("m")},
                    {"muster-agent", sha256_hex("a")},
                    {"muster-worker", sha256_hex("w")}};
  const auto noted =
      Contains(AllOf(Field(&Finding::stops, false),
                     Field(&Finding::text, HasSubstr("has 1 MiB free, and should"))));
  EXPECT_THAT(judged(check), Not(noted));
  check.state_disk.free_kb = 1024;
  EXPECT_THAT(judged(check), noted);
  EXPECT_THAT(judged(check), Not(Contains(Field(&Finding::stops, true))));
}

TEST(Judge, OnlyRootAndTheLoginUserOwnTheWayToThePrograms) {
  const auto with = [](const std::string& dirs, const std::string& user = "uid 0\n") {
    std::string output = good_output();
    output.replace(output.find("uid 0\n"), 6, user);
    return judged(*parse_check(output.insert(output.find("end 1"), dirs)));
  };
  const auto stopped = Contains(Field(&Finding::stops, true));
  EXPECT_THAT(with("dir 0 0 755 /\ndir 0 0 1777 /tmp\ndir 0 0 775 /opt\n"), Not(stopped));
  EXPECT_THAT(with("dir 65534 0 755 /data/a b\n"), stops("'/data/a b', on the way"));
  EXPECT_THAT(with("dir 65534 0 755 /data\n"), stops("belongs to user 65534"));
  EXPECT_THAT(with("dir 0 0 777 /data\n"), stops("written by everybody"));
  EXPECT_THAT(with("dir 0 5 775 /data\n"), stops("written by group 5"));
  const std::string ann = "uid 1000\nown-group 1000\n";
  EXPECT_THAT(with("dir 1000 1000 775 /home/ann\n", ann), Not(stopped));
  EXPECT_THAT(with("dir 1001 1000 755 /home/bob\n", ann), stops("belongs to user 1001"));
  EXPECT_THAT(with("dir 1000 5 775 /home/ann\n", ann), stops("written by group 5"));
  for (const char* bad : {"dir x 0 755 /\n", "dir 0 0 999 /\n", "dir 0 0 755 etc\n"}) {
    std::string output = good_output();
    EXPECT_FALSE(parse_check(output.insert(output.find("end 1"), bad))) << bad;
  }
}

// The script, on a directory that another user made, and by a link to it.
TEST(CheckScript, PrintsWhoOwnsTheWay) {
  const LocalHost local;
  std::filesystem::create_directory(local.dir() / "real");
  ::chmod((local.dir() / "real").c_str(), 0777);
  std::filesystem::create_directory_symlink(local.dir() / "real", local.dir() / "link");
  Wanted agent = wanted();
  agent.login.prefix = (local.dir() / "link/muster").string();
  agent.state_dir = (local.dir() / "state").string();
  const auto output =
      local.run("sh -s", check_script({.wanted = agent, .version = "0.1.0", .way_host = {}}));
  const auto check = parse_check(output.out);
  ASSERT_TRUE(check) << check.error().message << output.out;
  const auto dir = [&](const std::string& path, unsigned mode) {
    return Contains(AllOf(Field(&WayDir::path, path), Field(&WayDir::mode, mode),
                          Field(&WayDir::uid, ::getuid())));
  };
  EXPECT_THAT(check->way_dirs, dir((local.dir() / "link").string(), 0777U));
  EXPECT_THAT(check->way_dirs, dir((local.dir() / "real").string(), 0777U));
  EXPECT_THAT(check->way_dirs, dir(local.dir().string(), 0700U));
  EXPECT_THAT(check->way_dirs, Contains(Field(&WayDir::path, "/")));
  EXPECT_THAT(judged(*check), stops("written by everybody"));
}

TEST(Judge, TheEnrolmentPortIsChecked) {
  JudgeInput input{
      .wanted = wanted(), .check = good_check(), .programs = &kPrograms, .controller_runs = true};
  input.wanted.options = {"--enrol=head:7071"};
  input.check.enrol_way = WayState::Silent;
  EXPECT_THAT(judge(input), stops("the controller's enrolment port head:7071 does not answer"));
  input.check.enrol_way = WayState::Refused;
  EXPECT_THAT(judge(input), stops("controller: {enrol: ...}"));
  input.controller_runs = false;
  EXPECT_THAT(judge(input), Not(Contains(Field(&Finding::stops, true))));
  input.wanted.role = Role::Controller;
  input.check.enrol_port_taken = true;
  EXPECT_THAT(judge(input), stops("listens at the enrolment port (head:7071)"));
}

TEST(CheckScript, TriesTheEnrolmentPort) {
  const LocalHost local;
  CheckQuery query{.wanted = wanted(), .version = "0.1.0", .way_host = "127.0.0.1"};
  query.way_port = query.enrol_port = 1;
  query.enrol_host = "127.0.0.1";
  const auto check = parse_check(local.run("sh -s", check_script(query)).out);
  ASSERT_TRUE(check) << check.error().message;
  EXPECT_EQ(check->enrol_way, check->way);
  EXPECT_EQ(check->enrol_way, WayState::Refused);
}

TEST(CheckScript, SaysWhichClusterTheControllerHas) {
  const LocalHost local;
  Wanted controller = wanted();
  controller.role = Role::Controller;
  controller.state_dir = (local.dir() / "state").string();
  const auto cluster = [&]() -> std::optional<std::string> {
    const auto check =
        parse_check(local.run("sh -s", check_script({.wanted = controller, .version = "1"})).out);
    EXPECT_TRUE(check);
    return check ? check->cluster : "no check";
  };
  EXPECT_EQ(cluster(), std::nullopt);
  local.write(local.dir() / "state/journal/head", "");
  EXPECT_EQ(cluster(), "");
  local.write(local.dir() / "state/endpoint.json",
              "{\n  \"cluster_id\": \"c48e\",\n  \"pid\": 1\n}");
  EXPECT_EQ(cluster(), "c48e");
}

TEST(CheckScript, SaysWhetherTheAccessFileIsThere) {
  const LocalHost local;
  const std::filesystem::path file = local.dir() / "access.yaml";
  Wanted controller = wanted();
  controller.role = Role::Controller;
  controller.options = {"--access=" + file.string()};
  const auto trouble = [&] {
    const auto check =
        parse_check(local.run("sh -s", check_script({.wanted = controller, .version = "1"})).out);
    EXPECT_TRUE(check);
    return check ? check->access_trouble : "no check";
  };
  EXPECT_EQ(trouble(), "missing");
  local.write(file, "");
  EXPECT_EQ(trouble(), "");
  if (::geteuid() == 0) return;  // root reads every file
  ::chmod(file.c_str(), 0);
  EXPECT_EQ(trouble(), "unreadable");
}

TEST(Judge, AnAccessFileThatTheControllerCannotReadStopsIt) {
  JudgeInput input{.wanted = wanted(), .check = good_check(), .programs = &kPrograms};
  input.wanted.role = Role::Controller;
  input.wanted.options = {"--access=/etc/muster/access.yaml"};
  EXPECT_THAT(judge(input), Not(stops("access")));
  input.check.access_trouble = "missing";
  EXPECT_THAT(judge(input), stops("there is no file '/etc/muster/access.yaml'"));
  input.check.access_trouble = "unreadable";
  EXPECT_THAT(judge(input), stops("'root' may not read the file '/etc/muster/access.yaml'"));
}

TEST(Judge, TheControllersPortMustBeFree) {
  Wanted controller = wanted();
  controller.role = Role::Controller;
  controller.address = "0.0.0.0:7070";
  HostCheck check = good_check();
  check.port_taken = true;
  JudgeInput input{.wanted = controller, .check = check, .programs = &kPrograms};
  EXPECT_THAT(judge(input), stops("another program listens"));
  input.check.running = true;  // or it would be stopped for one that cannot start
  EXPECT_THAT(judge(input), stops("another program listens"));
  input.check.port_taken = false;
  EXPECT_THAT(judge(input), Not(stops("another program listens")));
}

TEST(Judge, OnlyRootHasTheLowPorts) {
  JudgeInput input{.wanted = wanted(), .check = good_check(), .programs = &kPrograms};
  input.wanted.role = Role::Controller;
  input.wanted.address = "0.0.0.0:443";
  input.wanted.options = {"--enrol=head:444"};
  input.check.ports_from = 444;
  EXPECT_THAT(judge(input), Not(stops("may not listen")));
  input.check.uid = 1000;
  EXPECT_THAT(judge(input), stops("may not listen at the controller's port (0.0.0.0:443)"));
  EXPECT_THAT(judge(input), Not(stops("the enrolment port")));
  input.check.ports_from = 1024;
  EXPECT_THAT(judge(input), stops("may not listen at the enrolment port (head:444)"));
}

int listener_at(std::uint32_t host, unsigned& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(host)}};
  socklen_t size = sizeof(address);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener, at, size), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, at, &size), 0);
  port = ntohs(address.sin_port);
  return listener;
}

// Ports were compared without addresses: a controller that was to listen at another address of the
// same port would have met somebody else's socket at its start, when the old one was stopped.
TEST(CheckScript, AnotherProgramsSocketTakesAnAddress) {
  unsigned port = 0;
  const int listener = listener_at(INADDR_LOOPBACK + 1, port);
  const LocalHost local;
  local.program(local.bin("id"), "echo 1500\n");  // not root, so without systemd
  CheckQuery query{.wanted = wanted(), .version = "1"};
  query.wanted.role = Role::Controller;
  query.wanted.login.prefix = (local.dir() / "opt").string();
  query.wanted.state_dir = (local.dir() / "state").string();
  query.listen_port = query.enrol_port = port;
  // Whether the two ports are taken. With `own` the controller has the socket.
  const auto taken = [&](const std::string& host, bool own) {
    process::SpawnRequest request{
        .path = "/bin/sleep", .argv = {"sleep", "600"}, .env = {"PATH=/bin"}, .cwd = "/"};
    if (own) request.in_fd = listener;
    const auto pid = process::spawn(request);
    EXPECT_TRUE(pid);
    const auto child = process::identify(pid ? *pid : 1);
    const auto self = process::self();
    const auto boot = process::boot_id();
    EXPECT_TRUE(child && self && boot);
    local.write(local.dir() / "opt/controller/supervisor",
                fmt::format("{} {} {} {} {}\n", boot->str(), self->pid, self->start_time,
                            child->pid, child->start_time));
    query.listen_host = query.enrol_host = host;
    const auto check = parse_check(local.run("sh -s", check_script(query)).out);
    if (pid) {
      ::kill(*pid, SIGKILL);
      ::waitpid(*pid, nullptr, 0);
    }
    EXPECT_TRUE(check && check->running && check->ports_from < 65536);
    EXPECT_EQ(check->port_taken, check->enrol_port_taken);
    EXPECT_EQ(check->enrol_way, WayState::Unknown);
    return check->port_taken;
  };
  for (const char* same : {"127.0.0.2", "0.0.0.0", "::", "head.example", ""}) {
    EXPECT_TRUE(taken(same, false)) << same;
    EXPECT_FALSE(taken(same, true)) << same;
  }
  for (const char* other : {"127.0.0.1", "::1", "10.0.0.1"})
    EXPECT_FALSE(taken(other, false)) << other;
  ::close(listener);
  const int wildcard = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 any{.sin6_family = AF_INET6, .sin6_port = htons(static_cast<std::uint16_t>(port))};
  ASSERT_EQ(::bind(wildcard, reinterpret_cast<sockaddr*>(&any), sizeof(any)), 0);
  ASSERT_EQ(::listen(wildcard, 1), 0);
  for (const char* each : {"127.0.0.1", "::1", "0.0.0.0"}) EXPECT_TRUE(taken(each, false)) << each;
  ::close(wildcard);
  EXPECT_FALSE(taken("", false));
}

TEST(Judge, AControllerAndAnAgentThatAreBothRootOnOneHostAreNoted) {
  Wanted controller = wanted();
  controller.role = Role::Controller;
  JudgeInput input{.wanted = controller, .check = good_check(), .programs = &kPrograms};
  const auto noted = Contains(
      AllOf(Field(&Finding::stops, false), Field(&Finding::text, HasSubstr("both run as root"))));
  EXPECT_THAT(judge(input), Not(noted));
  input.with_agent = true;
  EXPECT_THAT(judge(input), noted);
  input.check.uid = 1000;
  EXPECT_THAT(judge(input), Not(noted));
}

TEST(Units, AreWrittenLikeThoseOfThePackage) {
  const std::string unit = config_text(wanted(), good_check().places);
  EXPECT_THAT(unit, HasSubstr("\nRestartPreventExitStatus=64 77\n"));
  EXPECT_THAT(unit, HasSubstr("\nLimitNOFILE=1024:1048576\n"));
  EXPECT_THAT(unit, HasSubstr("\n" + unit_start(Role::Agent, good_check().places) + " "));
}

TEST(Steps, EverythingOnAnEmptyHostAndNothingOnAFinishedOne) {
  HostCheck check = good_check();
  Steps steps = steps_for(wanted(), check, kPrograms, "0.1.0");
  EXPECT_THAT(steps.upload, ElementsAre("muster", "muster-agent", "muster-worker"));
  EXPECT_TRUE(steps.set_current && steps.write_config && steps.issue && steps.start);

  for (const auto& [name, facts] : kPrograms) check.programs[name] = facts.sha256;
  check.current = "0.1.0";
  check.config_sha = sha256_hex(config_text(wanted(), check.places));
  check.credentials_there = check.credentials_valid = true;
  check.credentials_of = "node 'n1'";
  check.credentials_until = "1970-02-01T00:00:00Z";  // it is 1000 s after the start of 1970
  check.running = true;
  check.running_exe_sha = kPrograms.at("muster-agent").sha256;
  std::string words;
  for (const std::string& word : command_words(wanted(), check.places)) words += word + '\0';
  check.running_words_sha = sha256_hex(words);
  steps = steps_for(wanted(), check, kPrograms, "0.1.0");
  EXPECT_TRUE(steps.none()) << text_of(steps, check);

  check.credentials_until = "1970-01-30T00:00:00Z";  // in less than 30 days
  EXPECT_EQ(text_of(steps_for(wanted(), check, kPrograms, "0.1.0"), check),
            "issue new credentials");
  check.credentials_until = "1970-02-01T00:00:00Z";

  // An agent that renews its certificate of 30 days does so when 10 days are left.
  Wanted renews = wanted();
  renews.options = {"--enrol=head:7071"};
  check.credentials_until = "1970-01-11T00:00:00Z";
  EXPECT_FALSE(steps_for(renews, check, kPrograms, "0.1.0").issue);
  check.credentials_until = "1970-01-07T00:00:00Z";
  EXPECT_TRUE(steps_for(renews, check, kPrograms, "0.1.0").issue);
  check.credentials_until = "1970-02-01T00:00:00Z";

  // An upload that was followed by no start: the old program runs.
  check.running_exe_sha = sha256_hex("old");
  steps = steps_for(wanted(), check, kPrograms, "0.1.0");
  EXPECT_EQ(text_of(steps, check), "start it again");
  check.credentials_of = "node 'other'";
  EXPECT_EQ(text_of(steps_for(wanted(), check, kPrograms, "0.1.0"), check),
            "issue new credentials; start it again");
}

}  // namespace
}  // namespace muster::rollout
