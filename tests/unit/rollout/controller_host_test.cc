// The controller's host, with a script for `muster`: its lock, the manifest, and its answers.
#include "deploy/rollout/controller_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "common/process/identity.h"
#include "deploy/rollout/lock_mark.h"
#include "deploy/rollout/revoked.h"
#include "deploy/rollout/unzip.h"
#include "tests/unit/rollout/local_session.h"

namespace muster::rollout {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The mark with another field.
std::string with_field(const std::string& mark, int number, std::string_view value) {
  std::size_t at = 0;
  for (; number > 0; --number) at = mark.find('|', at) + 1;
  std::string out = mark;
  return out.replace(at, std::min(out.find('|', at), out.size()) - at, value);
}

TEST(LockMark, OnlyAProcessThatCouldBeSeenIsGone) {
  const std::string own = own_lock_mark();
  EXPECT_FALSE(parse_lock_mark(own).gone);
  EXPECT_EQ(parse_lock_mark(own).who, operator_name());
  const std::string dead = with_field(own, 4, "1");  // another one has its pid
  EXPECT_TRUE(parse_lock_mark(dead).gone);
  EXPECT_FALSE(parse_lock_mark(with_field(dead, 2, "other-boot")).gone);
  EXPECT_FALSE(parse_lock_mark(with_field(dead, 5, "1")).gone);  // another PID namespace
  EXPECT_FALSE(parse_lock_mark(with_field(dead, 6, "77")).gone);
  EXPECT_FALSE(parse_lock_mark(dead.substr(0, dead.rfind('|'))).gone);
  EXPECT_EQ(parse_lock_mark("eve@x|2026|boot|1|1").who, "eve@x");
  EXPECT_EQ(parse_lock_mark("").who, "");
}

class OnControllerHost : public testing::Test {
 protected:
  OnControllerHost() : controller_(opened(), places()) {
    fs::create_directories(places().role_dir(Role::Controller));
    fs::create_directories(places().state_dir);
  }
  [[nodiscard]] Places places() const {
    return {.prefix = (local_.dir() / "opt").string(),
            .state_dir = (local_.dir() / "state").string()};
  }
  Host opened() { return std::move(*host_over(local_, nobody_)); }
  void muster(const std::string& script) const {
    local_.program(places().current() + "/bin/muster",
                   "echo \"$@\" >> '" + (local_.dir() / "calls").string() + "'\n" + script);
  }
  [[nodiscard]] std::string calls() const { return local_.read(local_.dir() / "calls"); }
  void lock() {
    const auto locked = controller_.lock([this] { return host_over(local_, nobody_); });
    ASSERT_TRUE(locked) << locked.error().message;
  }
  [[nodiscard]] fs::path deployment() const { return fs::path(places().state_dir) / "deploy"; }

  const LocalHost local_;
  ssh::NoPrompts nobody_;
  ControllerHost controller_;
};

TEST_F(OnControllerHost, AManyNodesAnswerIsRead) {
  const fs::path answer = local_.dir() / "answer";
  std::string text = R"({"items": [)";
  for (int i = 0; i < 400; ++i)
    text += (i > 0 ? "," : "") + std::string(R"({"name": "n)") + std::to_string(i) +
            R"(", "connected": true, "instance": "i", "drain": {"why": "w"}, "inventory": ")" +
            std::string(4000, 'x') + "\"}";
  local_.write(answer, text + "]}");
  muster("cat '" + answer.string() + "'\n");
  const auto nodes = controller_.nodes();
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->size(), 400U);
  EXPECT_TRUE(nodes->at("n399").alive);
  EXPECT_EQ(nodes->at("n399").instance, "i");
  EXPECT_EQ(nodes->at("n399").drained_for, "w");
  muster("echo 'no controller' >&2; exit 13\n");
  const auto refused = controller_.nodes();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no controller"));
}

// Regression: the whole list was asked for. From about 3,000 certificates on it was more than an
// answer of a host may be, and every `up` ended there.
TEST_F(OnControllerHost, OnlyRevokedCertificatesAreRead) {
  constexpr int kCertificates = 20'000;
  const fs::path answer = local_.dir() / "answer";
  std::string text;
  for (int i = 0; i < kCertificates; ++i) {
    const std::string number = std::to_string(1'000'000'000 + i * 7'919LL);
    text +=
        R"({"apiVersion":"muster/v1","kind":"Certificate","serial":")" + number + number +
        R"(","node":"n)" + number + R"(","keySha256":")" + number + R"(","actor":"owner")" +
        (i % 1'000 == 7 ? R"(,"revokedAt":"2026-01-02T03:04:05Z","why":"it \"was\" lost")" : "") +
        "}\n";
  }
  local_.write(answer, text + R"({"user":"ann","keySha256":"of-ann","revokedAt":"2026"})" + "\n");
  muster("cat '" + answer.string() + "'\n");
  const auto revoked = read_revoked(controller_);
  ASSERT_TRUE(revoked) << revoked.error().message;
  EXPECT_EQ(revoked->size(), kCertificates / 1'000U) << "a user's is none of a node's";
  EXPECT_EQ(revoked->at(std::to_string(1'000'000'000 + 7 * 7'919LL)), "it \"was\" lost");
  muster("exit 0\n");
  EXPECT_THAT(*read_revoked(controller_), IsEmpty());
  muster("echo 'no controller' >&2; exit 13\n");
  const auto refused = read_revoked(controller_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no controller"));
}

TEST(Unzip, DamageAndSizeAreErrors) {
  EXPECT_EQ(*unzipped("plain", 1), "plain");
  EXPECT_FALSE(unzipped("\x1f\x8b\x08 damaged", 1 << 20));
  const LocalHost local;
  const std::string bytes = local.run("head -c 100000 /dev/zero | gzip -c", {}).out;
  EXPECT_EQ(unzipped(bytes, 100'001)->size(), 100'000U);
  EXPECT_FALSE(unzipped(bytes, 99'999));
  EXPECT_FALSE(unzipped(bytes.substr(0, bytes.size() - 4), 100'001));
}

TEST_F(OnControllerHost, AnothersLockKeepsTheManifest) {
  lock();
  Manifest manifest{.cluster = "prod"};
  manifest.controller = {.login = {.host = "h1"}, .places = places(), .versions = {"0.1.0"}};
  const auto written = controller_.write_manifest(manifest);
  ASSERT_TRUE(written) << written.error().message;
  const fs::path file = deployment() / "manifest.json";
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
  local_.write(deployment() / "lock/owner", "eve@elsewhere|2026|boot|1|1");
  manifest.cluster = "other";
  EXPECT_THAT(controller_.write_manifest(manifest).error().message, HasSubstr("took the lock"));
  EXPECT_THAT(controller_.remove_manifest().error().message, HasSubstr("took the lock"));
  EXPECT_THAT(local_.read(file), HasSubstr("prod"));
  EXPECT_FALSE(fs::exists(file.string() + ".new"));
}

TEST_F(OnControllerHost, AFileInTheLocksPlaceEndsWhenItIsOld) {
  const fs::path file = deployment() / "lock";
  local_.write(file, "eve@elsewhere");
  const auto refused = controller_.lock([this] { return host_over(local_, nobody_); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Conflict);
  EXPECT_TRUE(fs::is_regular_file(file));
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::seconds(90));
  lock();
  EXPECT_TRUE(fs::is_directory(file));
}

TEST_F(OnControllerHost, NoKeyStaysThere) {
  const fs::path dir = places().role_dir(Role::Controller);
  const auto left = [&] {
    std::string names;
    for (const auto& entry : fs::directory_iterator(dir)) names += entry.path().filename();
    return names;
  };
  const std::string writes = "while [ \"$1\" != -o ]; do shift; done\nprintf KEY > \"$2\"\n";
  local_.write(dir / "issue.killed/pem", "KEY");
  muster(writes);
  const auto issued = controller_.issue_credentials("n1", true);
  ASSERT_TRUE(issued) << issued.error().message;
  EXPECT_STREQ(issued->c_str(), "KEY");
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_THAT(calls(), HasSubstr(" --lifetime 30d"));
  fs::remove(local_.dir() / "calls");
  muster(writes + "kill -TERM $PPID\n");  // as a host that shuts down
  EXPECT_FALSE(controller_.issue_credentials("n1", false));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_THAT(calls(), Not(HasSubstr("--lifetime")));
}

TEST_F(OnControllerHost, DrainsNodes) {
  muster("case $5 in gone) exit 10;; bad) echo 'not that one' >&2; exit 12;; esac\n");
  EXPECT_TRUE(controller_.drain({"n1", "gone", "n2"}, "the reason"));
  EXPECT_THAT(calls(), HasSubstr("node drain n1 --why the reason\n"));
  EXPECT_THAT(calls(), HasSubstr("node drain n2 --why the reason\n"));
  const auto refused = controller_.undrain({"n1", "bad"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("undraining the nodes: not that one"));
  EXPECT_THAT(calls(), HasSubstr("node undrain n1\n"));
}

}  // namespace
}  // namespace muster::rollout
