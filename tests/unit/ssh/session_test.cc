// Sessions with a real sshd on the loopback.
#include "deploy/ssh/session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <algorithm>

#include "deploy/ssh/host_key.h"
#include "deploy/ssh/host_names.h"
#include "deploy/ssh/tcp.h"
#include "tests/unit/ssh/test_sshd.h"

namespace muster::ssh {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Duration kRunTime = std::chrono::seconds(60);

// Every key of all tests; RSA keys take long to make.
const TestFolder& keys() {
  static const TestFolder folder;
  static const bool made = [] {
    for (const char* name : {"host_ed", "host_other", "user_ed", "user_wrong"})
      make_key(folder, name, "ed25519");
    for (const char* name : {"host_ec", "user_ec"}) make_key(folder, name, "ecdsa");
    for (const char* name : {"host_rsa", "user_rsa"}) make_key(folder, name, "rsa");
    make_key(folder, "user_locked", "ed25519", "open sesame");
    folder.write("authorized", folder.read("user_ed.pub") + folder.read("user_ec.pub") +
                                   folder.read("user_rsa.pub") + folder.read("user_locked.pub"));
    folder.write("config", "HashKnownHosts no\n");
    return true;
  }();
  (void)made;
  return folder;
}
std::string host_key(const std::string& name) { return "HostKey " + keys().at(name) + "\n"; }

class OnePassword final : public Prompts {
 public:
  explicit OnePassword(std::string text) : text_(std::move(text)) {}
  std::optional<Secret> ask(const Question& question) override {
    questions.push_back(question.text);
    return Secret(std::string(text_));
  }
  std::vector<std::string> questions;

 private:
  std::string text_;
};

class SshSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_sshd(); !why.empty()) GTEST_SKIP() << why;
    ::unsetenv("SSH_AUTH_SOCK");
    keys();
  }
  // A line of known_hosts for the server.
  void know(const TestSshd& server, const std::string& key, const std::string& marker = "") {
    const std::string line = keys().read(key + ".pub");
    const std::string entry = host_entry("127.0.0.1", server.port());
    folder_.write("known", folder_.read("known") + marker + entry + " " + line);
  }
  [[nodiscard]] Target target(const TestSshd& server, const std::string& key = "user_ed") const {
    return {.host = "127.0.0.1",
            .port = server.port(),
            .identity_file = keys().at(key),
            .known_hosts = {folder_.at("known")}};
  }
  static Options options() { return {.ssh_config = keys().at("config")}; }
  // The message of the error, or "connected by TRANSPORT".
  std::string outcome(const Target& to, const Options& with = options()) {
    NoPrompts nobody;
    const auto session = connect(to, with, nobody);
    if (!session) return session.error().message;
    const auto output = (*session)->run({"echo hello; echo oops >&2; exit 3"}, {}, kRunTime);
    if (!output) return output.error().message;
    EXPECT_EQ(output->out, "hello\n");
    EXPECT_EQ(output->err, "oops\n");
    EXPECT_EQ(output->status, 3);
    return "connected by " + std::string(to_string((*session)->transport().kind));
  }
  TestFolder folder_;
};

TEST_F(SshSession, Ed25519AndEcdsaAreOfLibssh2) {
  TestSshd server(keys(), "ed_ec", host_key("host_ed") + host_key("host_ec"));
  know(server, "host_ec");
  EXPECT_EQ(outcome(target(server)), "connected by libssh2");
  EXPECT_EQ(outcome(target(server, "user_ec")), "connected by libssh2");
  Options no_program = options();
  no_program.ssh_program.clear();
  EXPECT_EQ(outcome(target(server), no_program), "connected by libssh2");
}

TEST_F(SshSession, RsaHostKeysAndGcmAreOfOpenssh) {
  TestSshd rsa(keys(), "rsa", host_key("host_rsa"));
  know(rsa, "host_rsa");
  EXPECT_EQ(outcome(target(rsa)), "connected by openssh");
  TestSshd gcm(keys(), "gcm", host_key("host_ed") + "Ciphers aes256-gcm@openssh.com\n");
  know(gcm, "host_ed");
  EXPECT_EQ(outcome(target(gcm)), "connected by openssh");
  EXPECT_EQ(outcome(target(gcm, "user_rsa")), "connected by openssh");
  Options no_program = options();
  no_program.ssh_program.clear();
  EXPECT_THAT(outcome(target(gcm), no_program), HasSubstr("no common algorithm"));
}

TEST_F(SshSession, AnRsaUserKeyIsOfOpenssh) {
  TestSshd server(keys(), "rsa_user", host_key("host_ed"));
  know(server, "host_ed");
  EXPECT_EQ(outcome(target(server, "user_rsa")), "connected by openssh");
}

TEST_F(SshSession, AnUnknownKeyIsRefusedOrRecorded) {
  for (const char* key : {"host_ed", "host_rsa"}) {
    TestSshd server(keys(), std::string("unknown_") + key, host_key(key));
    folder_.write("known", "");
    Target to = target(server);
    const std::string print = run_program("ssh-keygen", {"-lf", keys().at(key)}).out;
    const std::string hash = print.substr(print.find("SHA256:"), 50);
    EXPECT_THAT(outcome(to), HasSubstr("the host's key is not known: "));
    EXPECT_THAT(outcome(to), HasSubstr(hash));
    EXPECT_THAT(outcome(to), HasSubstr("host_keys: accept_new"));
    EXPECT_EQ(folder_.read("known"), "");
    to.accept_new = true;
    EXPECT_THAT(outcome(to), HasSubstr("connected by "));
    EXPECT_THAT(folder_.read("known"), HasSubstr(host_entry("127.0.0.1", server.port())));
    to.accept_new = false;
    EXPECT_THAT(outcome(to), HasSubstr("connected by "));
  }
}

TEST_F(SshSession, AChangedOrRevokedKeyIsRefusedAlsoWithAcceptNew) {
  TestSshd server(keys(), "changed", host_key("host_ed"));
  know(server, "host_other");
  const std::string before = folder_.read("known");
  Target to = target(server);
  for (const bool accept : {false, true}) {
    to.accept_new = accept;
    EXPECT_THAT(outcome(to), HasSubstr("the host's key has changed"));
    EXPECT_THAT(outcome(to), HasSubstr(folder_.at("known") + ":1"));
  }
  EXPECT_EQ(folder_.read("known"), before);
  know(server, "host_ed", "@revoked ");
  EXPECT_THAT(outcome(to), HasSubstr("the host's key is revoked at " + folder_.at("known") + ":2"));
  // the same of the other transport
  TestSshd rsa(keys(), "changed_rsa", host_key("host_rsa"));
  folder_.write("known", "");
  make_key(folder_, "another", "rsa");
  folder_.write("known", host_entry("127.0.0.1", rsa.port()) + " " + folder_.read("another.pub"));
  to = target(rsa);
  EXPECT_THAT(outcome(to), HasSubstr("the host's key has changed"));
  EXPECT_THAT(outcome(to), HasSubstr(folder_.at("known") + ":1"));
  know(rsa, "host_rsa", "@revoked ");
  EXPECT_THAT(outcome(to), HasSubstr("the host's key is revoked at " + folder_.at("known")));
}

// As ssh(1) does. By "[ALIAS]:PORT" the changed key would be new, and accept_new would take it.
TEST_F(SshSession, AnAliasOfHostKeysCountsForEveryPort) {
  TestSshd server(keys(), "alias", host_key("host_ed"));
  folder_.write("config", "HostKeyAlias lab\nHashKnownHosts no\n");
  const Options with{.ssh_config = folder_.at("config")};
  Target to = target(server);
  to.accept_new = true;
  folder_.write("known", "lab " + keys().read("host_other.pub"));
  EXPECT_THAT(outcome(to, with), HasSubstr("the host's key has changed"));
  EXPECT_EQ(folder_.read("known"), "lab " + keys().read("host_other.pub"));
  folder_.write("known", "");
  EXPECT_EQ(outcome(to, with), "connected by libssh2");
  EXPECT_THAT(folder_.read("known"), HasSubstr("lab ssh-ed25519 "));
}

TEST_F(SshSession, AKeyThatAFileRevokesIsRefused) {
  TestSshd server(keys(), "revoked_file", host_key("host_ed"));
  know(server, "host_ed");
  folder_.write("config", "RevokedHostKeys " + folder_.at("revoked") + "\n");
  const Options with{.ssh_config = folder_.at("config")};
  folder_.write("revoked", keys().read("host_other.pub"));
  EXPECT_EQ(outcome(target(server), with), "connected by openssh");
  folder_.write("revoked", keys().read("host_ed.pub"));
  EXPECT_THAT(outcome(target(server), with), HasSubstr("revoked"));
  Options no_program = with;
  no_program.ssh_program.clear();  // and so nothing reads the configuration
  EXPECT_EQ(outcome(target(server), no_program), "connected by libssh2");
}

TEST_F(SshSession, HashedNamesOfSshKeygenAreFound) {
  TestSshd server(keys(), "hashed", host_key("host_ed"));
  know(server, "host_ed");
  EXPECT_EQ(run_program("ssh-keygen", {"-q", "-H", "-f", folder_.at("known")}).status, 0);
  EXPECT_THAT(folder_.read("known"), HasSubstr("|1|"));
  EXPECT_EQ(outcome(target(server)), "connected by libssh2");
}

TEST_F(SshSession, AWrongKeyIsRefusedWithWhatWasTried) {
  TestSshd server(keys(), "wrong", host_key("host_ed"));
  know(server, "host_ed");
  const std::string text = outcome(target(server, "user_wrong"));
  EXPECT_THAT(text,
              HasSubstr("the host refused the authentication; it accepts publickey, and these "
                        "were tried: key '" +
                        keys().at("user_wrong") + "' (ssh-ed25519)"));
  TestSshd rsa(keys(), "wrong_rsa", host_key("host_rsa"));
  know(rsa, "host_rsa");
  EXPECT_THAT(outcome(target(rsa, "user_wrong")),
              HasSubstr("the host refused the authentication; it accepts publickey, and `ssh` "
                        "tried: " +
                        keys().at("user_wrong")));
}

TEST_F(SshSession, PassphrasesAndPasswordsAreAskedForOnce) {
  TestSshd server(keys(), "asked", host_key("host_ed") + "PasswordAuthentication yes\n");
  know(server, "host_ed");
  OnePassword person("open sesame");
  PromptOnce once(person);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(connect(target(server, "user_locked"), options(), once).has_value());
  EXPECT_EQ(person.questions.size(), 1U);
  OnePassword wrong("no such password");
  const auto refused = connect(target(server, "user_wrong"), options(), wrong);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("these were tried: the password"));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("no such password")));
  EXPECT_EQ(wrong.questions.size(), 3U);  // as `ssh` asks
  EXPECT_THAT(wrong.questions.front(), HasSubstr("@127.0.0.1:" + server.port_text()));
}

TEST_F(SshSession, KeysOfTheAgentSign) {
  TestSshd server(keys(), "agent", host_key("host_ed"));
  know(server, "host_ed");
  process::SpawnRequest request{.path = "ssh-agent",
                                .argv = {"ssh-agent", "-D", "-a", folder_.at("agent")}};
  request.env = process::own_environment();
  const auto agent = process::spawn(request);
  ASSERT_TRUE(agent.has_value());
  ::setenv("SSH_AUTH_SOCK", folder_.at("agent").c_str(), 1);
  const Deadline deadline = deadline_after(kRunTime);
  while (run_program("ssh-add", {"-q", keys().at("user_ec")}).status != 0 && !passed(deadline)) {
  }
  run_program("ssh-add", {"-q", keys().at("user_ed")});
  EXPECT_EQ(outcome(target(server, "user_wrong")), "connected by libssh2");
  EXPECT_EQ(outcome(target(server, "user_ed")), "connected by libssh2");
  ::unsetenv("SSH_AUTH_SOCK");
  ::kill(*agent, SIGTERM);
  ::waitpid(*agent, nullptr, 0);
}

TEST_F(SshSession, NobodyListensOrNobodySpeaks) {
  std::uint16_t free_port = 0;
  {
    TestSshd server(keys(), "gone", host_key("host_ed"));
    free_port = server.port();
  }
  Target to{.host = "127.0.0.1", .port = free_port, .known_hosts = {folder_.at("known")}};
  EXPECT_THAT(outcome(to), HasSubstr("Connection refused; is sshd running there"));
  to.host = "no-such-host.invalid";
  EXPECT_THAT(outcome(to), HasSubstr("does not resolve"));
  // A listener that accepts (in the kernel) and never speaks.
  const io::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent.get(), 4), 0);
  ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size);
  to = {.host = "127.0.0.1", .port = ntohs(address.sin_port), .known_hosts = {folder_.at("known")}};
  Options soon = options();
  soon.connect_timeout = std::chrono::milliseconds(300);
  EXPECT_THAT(outcome(to, soon), HasSubstr("did not answer in time"));
}

// Without these a host that is gone is noticed after two hours.
TEST_F(SshSession, TheKernelAsksAHostThatIsSilent) {
  TestSshd server(keys(), "alive", host_key("host_ed"));
  const auto socket = connect_tcp("127.0.0.1", server.port(), deadline_after(kRunTime),
                                  {.interval = std::chrono::seconds(7), .count = 4});
  ASSERT_TRUE(socket.has_value()) << socket.error().message;
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    ::getsockopt(socket->get(), level, name, &value, &size);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 7);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 7);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 28'000);
}

// As one behind a jump host that is gone: the socket stays open.
TEST_F(SshSession, AHostThatTakesNoMoreInputEndsInASentence) {
  TestSshd server(keys(), "stuck", host_key("host_ed"));
  know(server, "host_ed");
  folder_.write("config", "ServerAliveInterval 1\nServerAliveCountMax 1\n");
  NoPrompts nobody;
  auto session = connect(target(server), {.ssh_config = folder_.at("config")}, nobody);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  const std::string bytes(std::size_t{8} << 20U, 'x');
  const auto stuck =
      (*session)->run({"tail -f --pid=$PPID /dev/null"}, Source::memory(bytes), kRunTime);
  ASSERT_FALSE(stuck.has_value());
  EXPECT_EQ(stuck.error().code, ErrorCode::TimedOut);
  EXPECT_THAT(stuck.error().message, HasSubstr("the host has taken nothing for 2 s"));
}

class Runs : public SshSession, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    SshSession::SetUp();
    if (IsSkipped()) return;
    const std::string key = GetParam();
    server_ = std::make_unique<TestSshd>(keys(), "runs_" + key, host_key(key));
    know(*server_, key);
    auto session = connect(target(*server_), options(), nobody_);
    ASSERT_TRUE(session.has_value()) << session.error().message;
    session_ = std::move(*session);
  }
  Output run(const std::string& text, Source input = {}) {
    auto output = session_->run({text}, std::move(input), kRunTime);
    EXPECT_TRUE(output.has_value()) << output.error().message;
    return output ? *output : Output{};
  }
  NoPrompts nobody_;
  std::unique_ptr<TestSshd> server_;
  std::unique_ptr<Session> session_;
};

TEST_P(Runs, StatusSignalAndOutputs) {
  EXPECT_EQ(run("exit 0").status, 0);
  EXPECT_EQ(run("exit 255").status, 255);
  EXPECT_EQ(run("no-such-program-at-all").status, 127);
  EXPECT_EQ(run("cat", Source::memory("a\nb\0c")).out, "a\nb");
  const Output killed = run("kill -TERM $$; sleep 60");
  if (session_->transport().kind == TransportKind::Libssh2)
    EXPECT_EQ(killed.signal, "TERM");
  else
    EXPECT_EQ(killed.status, 255);
  EXPECT_EQ(run("exec >&- 2>&-; cat > '" + folder_.at("in") + "'", Source::memory("late")).status,
            0);
  EXPECT_EQ(folder_.read("in"), "late");
}

TEST_P(Runs, LargeInputAndOutput) {
  std::string bytes(std::size_t{20} << 20U, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 4096);
  folder_.write("large", bytes);
  const std::string sum = run_program("sha256sum", {folder_.at("large")}).out.substr(0, 64);
  EXPECT_EQ(run("sha256sum", Source::memory(bytes)).out.substr(0, 64), sum);
  const io::UniqueFd file(::open(folder_.at("large").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(run("sha256sum", Source::file(file.get())).out.substr(0, 64), sum);
  // both directions at once, with an output that is cut
  const Output echo = run("cat", Source::memory(bytes));
  EXPECT_TRUE(echo.out_cut);
  EXPECT_TRUE(echo.out.ends_with(kOutputCut));
  EXPECT_TRUE(echo.out.starts_with(bytes.substr(0, kOutputBytesMost)));
  EXPECT_EQ(run("echo still").out, "still\n");
}

TEST_P(Runs, AServerThatDiesOrHangsEndsInASentence) {
  std::thread killer([this] {
    const Deadline deadline = deadline_after(kRunTime);
    while (folder_.read("go") != "go\n" && !passed(deadline)) ::poll(nullptr, 0, 5);
    server_->signal_all(SIGKILL);
  });
  // The command ends with its sshd.
  const auto died = session_->run(
      {"echo go > '" + folder_.at("go") + "'; tail -f --pid=$PPID /dev/null"}, {}, kRunTime);
  killer.join();
  ASSERT_FALSE(died.has_value());
  EXPECT_THAT(died.error().message, HasSubstr("closed the connection"));
  auto fresh = connect(target(*server_), options(), nobody_);
  ASSERT_TRUE(fresh.has_value()) << fresh.error().message;
  server_->signal_all(SIGSTOP);
  const auto hangs = (*fresh)->run({"echo x"}, {}, std::chrono::milliseconds(500));
  server_->signal_all(SIGCONT);
  ASSERT_FALSE(hangs.has_value());
  EXPECT_EQ(hangs.error().code, ErrorCode::TimedOut);
  EXPECT_FALSE((*fresh)->run({"echo x"}, {}, kRunTime).has_value());
}

INSTANTIATE_TEST_SUITE_P(Transports, Runs, ::testing::Values("host_ed", "host_rsa"));

TEST_F(SshSession, ThroughAJumpHost) {
  TestSshd jump(keys(), "jump", host_key("host_ed"));
  TestSshd closed(keys(), "jump_closed", host_key("host_ed") + "AllowTcpForwarding no\n");
  TestSshd server(keys(), "behind", host_key("host_ec"));
  TestSshd rsa(keys(), "behind_rsa", host_key("host_rsa"));
  for (const TestSshd* one : {&jump, &closed}) know(*one, "host_ed");
  know(server, "host_ec");
  know(rsa, "host_rsa");
  Target to = target(server);
  to.jump = "127.0.0.1:" + jump.port_text();
  EXPECT_EQ(outcome(to), "connected by libssh2");
  EXPECT_EQ(jump.connections(), 1U);
  to.jump += "," + to.jump;
  EXPECT_EQ(outcome(to), "connected by libssh2");
  Target to_rsa = target(rsa);
  to_rsa.jump = "127.0.0.1:" + jump.port_text();
  EXPECT_EQ(outcome(to_rsa), "connected by openssh");
  for (Target* one : {&to, &to_rsa}) {
    one->jump = "127.0.0.1:" + closed.port_text();
    EXPECT_THAT(outcome(*one), HasSubstr("AllowTcpForwarding"));
  }
  // The jump host's key is checked as strictly.
  folder_.write("known", "");
  know(server, "host_ec");
  know(rsa, "host_rsa");
  to.jump = to_rsa.jump = "127.0.0.1:" + jump.port_text();
  EXPECT_THAT(outcome(to), HasSubstr("at the jump host "));
  EXPECT_THAT(outcome(to), HasSubstr("the host's key is not known"));
  EXPECT_THAT(outcome(to_rsa), HasSubstr("the host's key is not known"));
}

TEST_F(SshSession, AJumpHostMayAskForAPassphraseOrAPassword) {
  TestSshd jump(keys(), "asking_jump", host_key("host_ed") + "PasswordAuthentication yes\n");
  TestSshd server(keys(), "behind_it", host_key("host_ed"));
  know(jump, "host_ed");
  know(server, "host_ed");
  OnePassword person("open sesame");
  Target locked = target(server, "user_locked");
  locked.jump = "127.0.0.1:" + jump.port_text();
  PromptOnce once(person);
  EXPECT_TRUE(connect(locked, options(), once).has_value());
  EXPECT_THAT(person.questions, ElementsAre(HasSubstr("passphrase of the key")));
  // No account of this machine has a known password, so what is seen is the question.
  person.questions.clear();
  Target wrong = target(server, "user_wrong");
  wrong.jump = locked.jump;
  const auto refused = connect(wrong, options(), person);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("at the jump host "), HasSubstr("tried: the password")));
  EXPECT_THAT(person.questions, SizeIs(3));
  EXPECT_THAT(person.questions.front(),
              AllOf(HasSubstr("@127.0.0.1:" + jump.port_text()), HasSubstr(", the jump host")));
}

}  // namespace
}  // namespace muster::ssh
