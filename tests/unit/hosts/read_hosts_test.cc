// hosts.yaml: what is read, and that every mistake has its place and a sentence.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/hosts/hosts.h"
#include "deploy/hosts/ranges.h"
#include "deploy/hosts/values.h"

namespace muster::hosts {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> problems_of(std::string_view text) {
  std::vector<std::string> out;
  for (const spec::Problem& problem : read_hosts(text).problems)
    out.push_back(std::to_string(problem.line) + ":" + std::to_string(problem.column) + ": " +
                  problem.message);
  return out;
}

HostsFile read_well(std::string_view text) {
  auto read = read_hosts(text);
  EXPECT_THAT(problems_of(text), IsEmpty());
  return std::move(read.file);
}

TEST(ReadHosts, TheShortestFile) {
  const HostsFile file = read_well("controller: head\nagents: [gpu-1, gpu-2]\n");
  EXPECT_EQ(file.cluster, "");
  EXPECT_EQ(file.controller.login.host, "head");
  EXPECT_EQ(file.controller.listen, "0.0.0.0:7070");
  EXPECT_EQ(file.controller.address, "head:7070");
  ASSERT_EQ(file.agents.size(), 2U);
  EXPECT_EQ(file.agents[1].name, "gpu-2");
  EXPECT_EQ(file.agents[1].login.host, "gpu-2");
}

TEST(ReadHosts, DefaultsAreForEverybodyAndAnAgentsOwnKeysCountMore) {
  const HostsFile file = read_well(R"(
cluster: prod
controller: {host: head, listen: "0.0.0.0:9000", address: 10.0.0.1, port_range: 30000-30999}
defaults: {user: root, port: 2222, jump: bastion, labels: {rack: r1}, devices: 8}
agents:
  a: {host: 10.0.0.2}
  b: {host: 10.0.0.3, port: 22, labels: {rack: r2, zone: z}, training_address: 10.1.0.3}
)");
  EXPECT_EQ(file.cluster, "prod");
  EXPECT_EQ(file.controller.address, "10.0.0.1:9000");
  EXPECT_EQ(file.controller.login.user, "root");
  EXPECT_EQ(file.controller.login.port, 2222);
  EXPECT_THAT(file.controller.options,
              ElementsAre("--port-range=30000-30999", "--enrol=0.0.0.0:9001"));
  ASSERT_EQ(file.agents.size(), 2U);
  EXPECT_EQ(file.agents[0].login.jump, "bastion");
  EXPECT_THAT(file.agents[0].options,
              ElementsAre("--enrol=10.0.0.1:9001", "--devices=8", "--label=rack=r1"));
  EXPECT_EQ(file.agents[1].login.port, 22);
  EXPECT_THAT(file.agents[1].options,
              ElementsAre("--enrol=10.0.0.1:9001", "--devices=8", "--label=rack=r2",
                          "--label=zone=z", "--address=10.1.0.3"));
}

TEST(ReadHosts, TheEnrolmentPortIsForTheAgentsToo) {
  const HostsFile file = read_well(R"(
controller: {host: head, address: "fd00::1", enrol: "0.0.0.0:7071", access: /etc/muster/access.yaml}
agents: {a: {devices: 8}}
)");
  EXPECT_THAT(file.controller.options,
              UnorderedElementsAre("--enrol=0.0.0.0:7071", "--access=/etc/muster/access.yaml"));
  EXPECT_THAT(file.agents[0].options, ElementsAre("--enrol=[fd00::1]:7071", "--devices=8"));
  for (const char* enrol : {"0.0.0.0", "0.0.0.0:7070"})
    EXPECT_THAT(
        problems_of(fmt::format("controller: {{host: h, enrol: \"{}\"}}\nagents: [a]\n", enrol)),
        ElementsAre(HasSubstr("give HOST:PORT with a port of its own, as 0.0.0.0:7071")))
        << enrol;
  EXPECT_THAT(problems_of("controller: {host: h, listen: \"0.0.0.0:65535\"}\nagents: [a]\n"),
              ElementsAre(HasSubstr("enrol: '0.0.0.0:65536': give HOST:PORT")));
  const HostsFile without = read_well("controller: {host: h, enrol: none}\nagents: [a]\n");
  EXPECT_THAT(without.controller.options, IsEmpty());
  EXPECT_THAT(without.agents[0].options, IsEmpty());
  const HostsFile six = read_well("controller: {host: h, listen: \"[::]:7070\"}\nagents: [a]\n");
  EXPECT_THAT(six.controller.options, ElementsAre("--enrol=[::]:7071"));
}

// What the connection would refuse later is refused with its line.
TEST(ReadHosts, TheLoginSocketIsAPathOrNone) {
  const auto text = [](std::string_view value) {
    return fmt::format("controller: {{host: h, login_socket: {}}}\nagents: [a]\n", value);
  };
  for (const char* good : {"none", "/run/muster/two.sock"})
    EXPECT_EQ(read_well(text(good)).controller.login_socket, good);
  EXPECT_EQ(read_well("controller: h\nagents: [a]\n").controller.login_socket, "");
  EXPECT_THAT(problems_of(text("login.sock")), Contains(HasSubstr("login_socket")));
}

TEST(ReadHosts, ALoginNameIsOneThatSshTakes) {
  EXPECT_EQ(
      read_well("controller: {host: h, user: \"ann+x@lab\"}\nagents: [a]\n").controller.login.user,
      "ann+x@lab");
  for (const char* user : {"CORP\\\\ann", "ann$", "a b", "-x"})
    EXPECT_THAT(
        problems_of(fmt::format("controller: {{host: h, user: \"{}\"}}\nagents: [a]\n", user)),
        ElementsAre(HasSubstr("not a login name")))
        << user;
}

TEST(ReadHosts, ARangeIsOneNodeForEachNumber) {
  const HostsFile file = read_well(R"(
controller: head
agents:
  node[08-11]: {host: "10.0.0.[108-111]", training_address: "10.1.0.[8-11]"}
  other: {}
)");
  ASSERT_EQ(file.agents.size(), 5U);
  EXPECT_EQ(file.agents[0].name, "node08");
  EXPECT_EQ(file.agents[3].name, "node11");
  EXPECT_EQ(file.agents[3].login.host, "10.0.0.111");
  EXPECT_THAT(file.agents[3].options, ElementsAre("--enrol=head:7071", "--address=10.1.0.11"));
}

TEST(ReadHosts, TheManagementAddressIsWhereAHostIs) {
  const HostsFile file = read_well(R"(
controller: {host: head, management_address: 10.0.0.1}
agents:
  gpu[1-2]: {management_address: "10.0.0.[11-12]", training_address: "10.1.0.[11-12]"}
)");
  EXPECT_EQ(file.controller.login.host, "head");
  EXPECT_EQ(file.controller.login.address, "10.0.0.1");
  EXPECT_EQ(file.controller.address, "10.0.0.1:7070");
  EXPECT_EQ(file.agents[1].login.host, "gpu2");
  EXPECT_EQ(file.agents[1].login.address, "10.0.0.12");
  EXPECT_THAT(file.agents[1].options, ElementsAre("--enrol=10.0.0.1:7071", "--address=10.1.0.12"));
  EXPECT_THAT(problems_of("controller: h\ndefaults: {management_address: 10.0.0.1}\nagents: [a]\n"),
              ElementsAre(HasSubstr("'management_address' is no default")));
  EXPECT_THAT(
      problems_of("controller: h\nagents:\n  a: {management_address: 10.0.0.1}\n  b: {host: "
                  "10.0.0.1}\n"),
      ElementsAre(HasSubstr("nodes 'a' and 'b' are both on host")));
}

TEST(ReadHosts, MistakesHaveTheirPlace) {
  const auto problems = problems_of(R"(controller: head
agent: {}
agents:
  a: {hosst: x}
  b: {port: 70000}
  c: {training_interface: eth0}
  d: {host: -oProxyCommand=x}
  "e f": {}
  g: {labels: [x]}
)");
  EXPECT_THAT(
      problems,
      ElementsAre(HasSubstr("2:1: key 'agent' is unknown; did you mean 'agents'?"),
                  HasSubstr("4:7: key 'hosst' is unknown; did you mean 'host'?"),
                  HasSubstr("5:13: port: '70000': not a port"),
                  HasSubstr("6:7: 'training_interface' is not possible in this version"),
                  HasSubstr("7:13: host: '-oProxyCommand=x': not a host"),
                  HasSubstr("8:3: 'e f' is not a node name"), HasSubstr("9:15: labels: no map")));
}

TEST(ReadHosts, NodesAndHostsAreThereOnce) {
  EXPECT_THAT(problems_of("controller: h\nagents:\n  n[1-3]: {}\n  n2: {host: x}\n"),
              ElementsAre(HasSubstr("4:3: node 'n2' is there twice")));
  EXPECT_THAT(problems_of("controller: h\nagents:\n  a: {host: x}\n  b: {host: x}\n"),
              ElementsAre(HasSubstr("nodes 'a' and 'b' are both on host 'x'")));
  EXPECT_THAT(problems_of("controller: h\nagents: {'n[1-3]': {host: 'x[1-2]'}}\n"),
              ElementsAre(HasSubstr("is 2 of them for 3 nodes")));
}

// Its rows and what is said while `up` works would look like the controller's.
TEST(ReadHosts, NoNodeIsNamedController) {
  for (const char* agents : {"{controller: {host: x}}", "[a, controller]"})
    EXPECT_THAT(problems_of(std::string("controller: h\nagents: ") + agents + "\n"),
                ElementsAre(HasSubstr("a node cannot be named 'controller'")));
  EXPECT_EQ(read_well("controller: h\nagents: {a: {host: controller}}\n").agents.size(), 1U);
}

TEST(ReadHosts, WhatIsMissingIsNamed) {
  EXPECT_THAT(problems_of("agents: [a]"), ElementsAre(HasSubstr("'controller' is missing")));
  EXPECT_THAT(problems_of("controller: a"), ElementsAre(HasSubstr("'agents' is missing")));
  EXPECT_THAT(problems_of("[]"), ElementsAre(HasSubstr("the file is no map")));
  // It had no place, so the error did not name the file.
  for (const char* empty : {"", "# nothing\n", "\n"})
    EXPECT_THAT(problems_of(empty), ElementsAre(HasSubstr("1:1: the file is empty; it needs")));
  EXPECT_THAT(problems_of("controller: {host: a, listen: b}\nagents: [a]"),
              ElementsAre(HasSubstr("listen: 'b' has no port")));
}

TEST(ReadHosts, OutputsDoNotLieInAStateDirectoryThatAPurgeRemoves) {
  const auto problems = [](std::string_view controller, std::string_view agent) {
    return problems_of(fmt::format("controller: {{host: h{}}}\nagents: {{a: {{host: b{}}}}}\n",
                                   controller, agent));
  };
  EXPECT_THAT(problems("", ""), IsEmpty());
  EXPECT_THAT(problems(", outputs_root: /data/out", ", state_dir: /data/outer"), IsEmpty());
  EXPECT_THAT(problems(", state_dir: /data/c, outputs_root: /data/c/outputs/", ""), IsEmpty());
  EXPECT_THAT(problems(", outputs_root: /var/lib/muster/controller/outputs", ""), IsEmpty());
  EXPECT_THAT(problems(", outputs_root: /data/c/out, state_dir: /data/c/", ""),
              ElementsAre(HasSubstr("1:37: outputs of jobs ('/data/c/out') would lie in the state "
                                    "directory of the controller ('/data/c')")));
  EXPECT_THAT(problems(", outputs_root: /var/lib/muster/agent", ""),
              ElementsAre(HasSubstr("the state directory of agent 'a'")));
  EXPECT_THAT(problems(", outputs_root: /data/a/out", ", state_dir: /data/a"),
              ElementsAre(HasSubstr("the state directory of agent 'a' ('/data/a')")));
  EXPECT_THAT(problems(", state_dir: /data/m", ", state_dir: /data/m"),
              ElementsAre(HasSubstr("outputs of jobs ('/data/m/outputs')")));
}

TEST(Ranges, Expand) {
  EXPECT_THAT(*expand_range("n[9-11]", 100), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(*expand_range("n[1,03-4]x", 100), ElementsAre("n1x", "n03x", "n04x"));
  EXPECT_THAT(*expand_range("n", 100), ElementsAre("n"));
  for (const char* wrong : {"n[", "n]", "n[1-", "n[2-1]", "n[]", "n[a]", "n[1]n[2]", "n[1-101]",
                            "n[[1]]", "n[-1]", "n[0-4294967295]"})
    EXPECT_FALSE(expand_range(wrong, 100).has_value()) << wrong;
}

TEST(Values, Addresses) {
  EXPECT_EQ(split_address("[::1]:70").host, "::1");
  EXPECT_EQ(split_address("[::1]:70").port, 70U);
  EXPECT_EQ(split_address("fe80::1").host, "fe80::1");
  EXPECT_EQ(split_address("fe80::1").port, 0U);
  EXPECT_EQ(split_address("h:99999").port, 0U);
  EXPECT_NE(why_not(ValueKind::Address, "h:99999"), "");
}

TEST(Values, APathIsWrittenInOneWayAndIsNoDirectoryOfTheSystem) {
  for (const char* good : {"/data/muster", "/a/b/", "/a/.b/..c", "/a/b.", "/a/b c/d"})
    EXPECT_EQ(why_not(ValueKind::Path, good), "") << good;
  for (const char* wrong : {"/", "/data", "/data/", "//data", "/a//b", "/a/b//", "/a/./b", "/a/b/.",
                            "/./a/b", "/a/../b", "/a/b/..", "a/b", "~/a/b"})
    EXPECT_NE(why_not(ValueKind::Path, wrong), "") << wrong;
}

TEST(ReadHosts, ALabelsKeyIsWhatTheAgentTakes) {
  EXPECT_THAT(read_well("controller: h\nagents: {a: {labels: {k8s.io/rack-1_a: x}}}\n")
                  .agents.front()
                  .options,
              Contains("--label=k8s.io/rack-1_a=x"));
  for (const char* key : {"-a", "'a b'", "'a=b'", "''"})
    EXPECT_THAT(problems_of(std::string("controller: h\nagents: {a: {labels: {") + key + ": x}}}"),
                ElementsAre(HasSubstr("a label is KEY: VALUE")))
        << key;
}

}  // namespace
}  // namespace muster::hosts
