#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/ssh/askpass.h"
#include "deploy/ssh/identity.h"
#include "deploy/ssh/openssh_args.h"
#include "deploy/ssh/openssh_log.h"
#include "deploy/ssh/prompts.h"
#include "deploy/ssh/ssh_config.h"

namespace muster::ssh {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Defaults kDefaults{.user = "me", .home = "/home/me"};

TEST(SshConfig, TheOutputOfSshDashG) {
  const auto hop =
      configured_hop({.host = "gpu1"},
                     "host gpu1\nuser ops\nhostname 10.0.0.7\nport 2200\n"
                     "identitiesonly yes\nhashknownhosts yes\nidentityfile ~/.ssh/lab\n"
                     "identityfile /keys/b\nproxyjump bastion\nhostkeyalias lab-gpu1\n"
                     "userknownhostsfile /home/me/kh /home/me/kh2\n"
                     "globalknownhostsfile /etc/ssh/ssh_known_hosts\n",
                     kDefaults);
  ASSERT_TRUE(hop.has_value());
  EXPECT_EQ(hop->text(), "ops@gpu1:2200");
  EXPECT_EQ(hop->host_name, "10.0.0.7");
  EXPECT_EQ(hop->key_name(), "lab-gpu1");
  EXPECT_THAT(hop->identity_files, ElementsAre("/home/me/.ssh/lab", "/keys/b"));
  EXPECT_THAT(hop->known_hosts,
              ElementsAre("/home/me/kh", "/home/me/kh2", "/etc/ssh/ssh_known_hosts"));
  EXPECT_EQ(hop->proxy_jump, "bastion");
  EXPECT_TRUE(hop->identities_only && hop->hash_known_hosts);
}

// ssh(1) asks known_hosts for an alias without a port; "[lab-gpu1]:2200" would be a new host.
TEST(SshConfig, AnAliasOfHostKeysHasNoPort) {
  const auto hop = configured_hop({.host = "gpu1"}, "hostname gpu1\nport 2200\n", kDefaults);
  ASSERT_TRUE(hop.has_value());
  EXPECT_EQ(hop->key_port(), 2200);
  const auto alias = configured_hop({.host = "gpu1"},
                                    "hostname gpu1\nport 2200\nhostkeyalias lab-gpu1\n", kDefaults);
  ASSERT_TRUE(alias.has_value());
  EXPECT_EQ(alias->key_port(), 22);
}

// 0 is OpenSSH's own default, which would wait for hours.
TEST(SshConfig, HowLongAHostMayBeSilent) {
  const auto most = [](const char* config) {
    const auto hop = configured_hop({.host = "gpu1"}, config, kDefaults);
    return hop ? hop->alive.most().count() : 0;
  };
  EXPECT_EQ(most("serveraliveinterval 0\nserveralivecountmax 3\n"), 45);
  EXPECT_EQ(most("serveraliveinterval 5\nserveralivecountmax 4\n"), 20);
  EXPECT_EQ(most("serveraliveinterval 99999\nserveralivecountmax no\n"), 3 * 3600);
}

TEST(SshConfig, SettingsAboutHostKeysThatOnlySshObeys) {
  const auto setting = [](const char* config) {
    const auto hop = configured_hop({.host = "gpu1"}, config, kDefaults);
    return hop ? hop->key_setting : hop.error().message;
  };
  EXPECT_EQ(setting("revokedhostkeys /etc/ssh/revoked\n"), "RevokedHostKeys");
  EXPECT_EQ(setting("knownhostscommand /usr/bin/keys %H\n"), "KnownHostsCommand");
  EXPECT_EQ(setting("revokedhostkeys none\nknownhostscommand none\n"), "");
}

TEST(SshConfig, TheTargetComesFirst) {
  const auto hop = configured_hop(
      {.host = "gpu1", .port = 22, .user = "root", .jump = "none", .known_hosts = {"/kh"}},
      "user ops\nhostname 10.0.0.7\nport 2200\nproxyjump bastion\nproxycommand nc\n"
      "userknownhostsfile /home/me/kh\n",
      kDefaults);
  ASSERT_TRUE(hop.has_value());
  EXPECT_EQ(hop->text(), "root@gpu1");
  EXPECT_THAT(hop->known_hosts, ElementsAre("/kh"));
  EXPECT_EQ(hop->proxy_jump + hop->proxy_command, "");
}

TEST(SshConfig, WithoutSshThePlainValuesCount) {
  const Hop hop = plain_hop({.host = "gpu1"}, kDefaults);
  EXPECT_EQ(hop.text(), "me@gpu1");
  EXPECT_EQ(hop.identity_files.front(), "/home/me/.ssh/id_ed25519");
  EXPECT_EQ(hop.known_hosts.front(), "/home/me/.ssh/known_hosts");
  EXPECT_THAT(plain_hop({.host = "gpu1", .identity_file = "~/k"}, kDefaults).identity_files,
              ElementsAre("/home/me/k"));
}

TEST(SshConfig, NamesThatAreOptionsOrCommandsAreRefused) {
  for (const char* name : {"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb", "a'b"}) {
    EXPECT_FALSE(check_target({.host = name}).has_value()) << name;
    if (*name == '\0') continue;
    EXPECT_FALSE(check_target({.host = "a", .user = name}).has_value()) << name;
  }
  for (const char* name : {"-oProxyCommand=x", "a b", "a;b", "$(x)"})
    EXPECT_FALSE(configured_hop({.host = "a"}, "hostname " + std::string(name) + "\n", kDefaults))
        << name;
  EXPECT_TRUE(check_target({.host = "fe80::1%eth0", .user = "me@lab.example"}).has_value());
}

TEST(SshConfig, Jumps) {
  const auto text = [](std::string_view jumps) {
    const auto parsed = parse_jumps(jumps);
    if (!parsed) return parsed.error().message;
    std::string out;
    for (const Target& jump : *parsed)
      out += jump.user + "@" + jump.host + ":" + std::to_string(jump.port) + " ";
    return out;
  };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("none"), "");
  EXPECT_EQ(text("a,u@b:22,ssh://c:2200"), "@a:0 u@b:22 @c:2200 ");
  EXPECT_EQ(text("u@[fe80::1]:22,[::1]"), "u@fe80::1:22 @::1:0 ");
  for (const char* bad : {",", "a,", "@a", "a:", "a:0", "a:x", "a:70000", "[::1", "[::1]x", "-x"})
    EXPECT_THAT(text(bad), HasSubstr("is not like [USER@]HOST[:PORT]")) << bad;
  EXPECT_THAT(text("a,b,c,d,e"), HasSubstr("more than 4 jump hosts"));
}

Route route_of(std::vector<Hop> hops) { return {.hops = std::move(hops), .program = "/bin/ssh"}; }

TEST(OpenSshArgs, EveryHopIsAsStrict) {
  const Hop jump{.alias = "b", .host_name = "10.0.0.1", .user = "j", .known_hosts = {"/k%h"}};
  const Hop last{.alias = "n", .host_name = "fe80::2%eth0", .port = 2200, .user = "u"};
  const Route route = route_of({jump, last});
  const OpenSshPlan plan{.route = route, .ssh_config = "/cfg", .folder = "/tmp/d"};
  const auto args = master_args(plan);
  EXPECT_THAT(args, Contains("StrictHostKeyChecking=yes"));
  EXPECT_THAT(args, Contains("UserKnownHostsFile=/dev/null"));
  EXPECT_THAT(args, Contains("ServerAliveInterval=15"));
  EXPECT_THAT(args, Contains("ServerAliveCountMax=3"));
  EXPECT_EQ(args.back(), "n");
  const auto proxy = std::ranges::find_if(
      args, [](const std::string& arg) { return arg.starts_with("ProxyCommand="); });
  ASSERT_NE(proxy, args.end());
  EXPECT_THAT(*proxy, HasSubstr("ProxyCommand=/bin/ssh -E /tmp/d/log0 -F /cfg -o "
                                "BatchMode=yes -o StrictHostKeyChecking=yes -o "
                                "'UserKnownHostsFile=\"/k%%%%h\"'"));
  EXPECT_THAT(*proxy, HasSubstr("-W '[fe80::2%%eth0]:2200' -- b"));
  EXPECT_EQ(run_args(plan, "echo 'a b'").back(), "echo 'a b'");
  const Route direct = route_of({last});
  EXPECT_THAT(run_args({.route = direct, .accept_new = true, .folder = "/d"}, "x"),
              Contains("StrictHostKeyChecking=accept-new"));
}

// An empty password would count as a failed login.
TEST(OpenSshArgs, OnlyAHopWithAnAnswerGetsAPassword) {
  const Hop jump{.alias = "b", .host_name = "10.0.0.1", .user = "j"};
  const Hop last{.alias = "n", .host_name = "10.0.0.2", .user = "u"};
  const Route route = route_of({jump, last});
  const auto args = master_args(
      {.route = route, .has_answers = true, .passwords = {false, true}, .folder = "/tmp/d"});
  EXPECT_THAT(args, testing::Not(Contains("PasswordAuthentication=no")));
  EXPECT_THAT(args, Contains("KbdInteractiveAuthentication=no"));
  EXPECT_THAT(args, Contains(testing::AllOf(HasSubstr("ProxyCommand="),
                                            HasSubstr("PasswordAuthentication=no"))));
  EXPECT_THAT(master_args({.route = route, .folder = "/tmp/d"}), Contains("BatchMode=yes"));
}

TEST(OpenSshLog, WhatIsNotRecognizedIsShown) {
  const auto text = [](std::string_view log) {
    return openssh_failure(log, "[n]:2200", {"/kh"}).message;
  };
  EXPECT_EQ(text("debug1: x\nsome\x1b[1mthing new\r\n"), "some?[1mthing new");
  EXPECT_EQ(text(""), "`ssh` did not say why");
  EXPECT_THAT(text("channel 0: open failed: administratively prohibited: open failed\n"),
              HasSubstr("AllowTcpForwarding"));
  EXPECT_THAT(text("debug1: Server host key: ssh-rsa SHA256:abc\n@ WARNING: REMOTE HOST "
                   "IDENTIFICATION HAS CHANGED!     @\nOffending RSA key in /home/a b:c/kh:12\n"),
              HasSubstr("it shows ssh-rsa SHA256:abc, and another key is recorded at /home/a "
                        "b:c/kh:12; "));
}

TEST(OpenSshLog, SaysWhetherAPasswordWouldHelp) {
  const std::string_view keys = "u@n: Permission denied (publickey).\n",
                         both =
                             "u@n: Permission denied (publickey,password,keyboard-interactive).\n";
  EXPECT_TRUE(openssh_needs_key(keys));
  EXPECT_FALSE(openssh_needs_password(keys));
  EXPECT_TRUE(openssh_needs_password(both));
  EXPECT_FALSE(openssh_needs_key("u@n: Permission denied (password).\n"));
  EXPECT_FALSE(openssh_needs_password("u@n: Permission denied (keyboard-interactive).\n"))
      << "its questions are the host's own";
  EXPECT_FALSE(openssh_needs_key("debug1: Connection established.\n"));
}

TEST(Askpass, AnswersOnlyItsOwnQuestions) {
  AskpassAnswers answers;
  answers.passphrases.push_back({.path = "/k/" + std::string(120, 'x'), .secret = Secret("one")});
  answers.passwords.push_back({.accounts = {"u@Alias", "u@10.0.0.1"}, .secret = Secret("two")});
  const auto answer = [&](const std::string& question) -> std::string {
    const Secret* found = answer_to(question, answers);
    return found == nullptr ? "" : found->c_str();
  };
  EXPECT_EQ(answer("Enter passphrase for key '/k/" + std::string(97, 'x') + "': "), "one");
  EXPECT_EQ(answer("Enter passphrase for key '/k/y': "), "");
  EXPECT_EQ(answer("u@10.0.0.1's password: "), "two");
  EXPECT_EQ(answer("u@alias's password: "), "two") << "`ssh` shows lower case";
  EXPECT_EQ(answer("(u@alias) Password: "), "") << "a text of the host";
  EXPECT_EQ(answer("u@10.0.0.2's password: "), "");
  EXPECT_EQ(answer("root@alias's password: "), "");
  EXPECT_EQ(answer("Password: "), "");
}

TEST(Identity, FilesThatAreNoKey) {
  EXPECT_EQ(parse_identity("").type, "");
  EXPECT_FALSE(parse_identity("hello").has_private);
  const Identity broken = parse_identity("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END");
  EXPECT_TRUE(broken.has_private && broken.blob.empty() && !broken.encrypted);
  EXPECT_EQ(parse_identity("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n").type,
            "ssh-rsa");
  EXPECT_TRUE(parse_identity("-----BEGIN ENCRYPTED PRIVATE KEY-----\n").encrypted);
}

class CountedPrompts final : public Prompts {
 public:
  std::optional<Secret> ask(const Question& question) override {
    ++asked;
    if (question.subject == "nobody") return std::nullopt;
    return Secret(std::string("secret"));
  }
  int asked = 0;
};

TEST(PromptOnce, RemembersAnswersAndRefusals) {
  CountedPrompts person;
  PromptOnce once(person);
  for (int i = 0; i < 3; ++i) {
    const auto answer = once.ask({.kind = Question::Kind::Password, .subject = "a", .text = ""});
    ASSERT_TRUE(answer.has_value());
    EXPECT_STREQ(answer->c_str(), "secret");
    EXPECT_FALSE(once.ask({.kind = Question::Kind::Passphrase, .subject = "nobody", .text = ""}));
  }
  EXPECT_EQ(person.asked, 2);
}

TEST(PromptOnce, AnAnswerThatAHostRefusedIsAskedForAgain) {
  CountedPrompts person;
  PromptOnce once(person);
  const Question question{.kind = Question::Kind::Password, .subject = "a", .text = ""};
  const auto answer = once.ask(question);
  ASSERT_TRUE(answer);
  once.refused(question, Secret(std::string("an older answer")));
  (void)once.ask(question);
  EXPECT_EQ(person.asked, 1);
  once.refused(question, *answer);
  (void)once.ask(question);
  EXPECT_EQ(person.asked, 2);
}

TEST(PromptOnce, AnAnswerThatAHostTookStays) {
  CountedPrompts person;
  PromptOnce once(person);
  const Question question{.kind = Question::Kind::Password, .subject = "ann", .text = ""};
  EXPECT_FALSE(once.knows(question));
  const auto answer = once.ask(question);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(once.knows(question));
  once.accepted(question, *answer);
  once.accepted(question, Secret(std::string("of another host")));
  EXPECT_FALSE(once.refused(question, Secret(std::string("of another host"))));
  EXPECT_TRUE(once.refused(question, *answer));
  EXPECT_STREQ(once.ask(question)->c_str(), "secret");
  EXPECT_EQ(person.asked, 1);
}

}  // namespace
}  // namespace muster::ssh
