// The agent's half: joining and renewing, against a real enrolment port.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/enrol/join.h"
#include "agent/enrol/pending_key.h"
#include "agent/enrol/renewal.h"
#include "agent/enrol/renewal_time.h"
#include "common/io/file.h"
#include "tests/unit/enrol/door.h"

namespace muster::agent {
namespace {

using test::Asked;
using test::Door;
namespace fs = std::filesystem;

// Wrong by 400 days the first three times.
class WrongClock : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    Now now = system_clock().now();
    if (times_++ < 3) now.wall += std::chrono::hours(24 * 400);
    return now;
  }

 private:
  mutable std::atomic<int> times_ = 0;
};

class EnrolAgent : public testing::Test {
 protected:
  void SetUp() override {
    std::string dir = "/tmp/muster-enrol-XXXXXX";
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    dir_ = dir;
    file_ = dir_ / "credentials.pem";
  }
  void TearDown() override { fs::remove_all(dir_); }

  JoinOptions joining(const Door& door) {
    std::ofstream(dir_ / "token") << enrol::token_text(door.token());
    ::chmod((dir_ / "token").c_str(), 0600);
    return {.enrol = door.address(),
            .token = dir_ / "token",
            .credentials = file_,
            .pending_key = dir_ / "enrol.key",
            .node = "n1",
            .retry_min = std::chrono::milliseconds(1),
            .retry_max = std::chrono::milliseconds(10)};
  }
  RenewalOptions renewing(const Door& door) {
    return {.enrol = door.address(),
            .credentials = file_,
            .pending_key = dir_ / "enrol.key",
            .node = "n1",
            .retry_min = std::chrono::milliseconds(1),
            .retry_max = std::chrono::milliseconds(10)};
  }
  // For an hour, made `ago`.
  pki::Credentials keep(const Door& door, Duration ago, const std::string& node = "n1") {
    const auto key = *pki::Key::generate();
    const auto made =
        door.authority().issue(key, {.cluster = "c1", .role = pki::Role::Node, .name = node},
                               system_clock().now().wall - ago, std::chrono::hours(1));
    auto credentials = pki::parse_credentials(*key.private_pem() + made->pem() +
                                              door.authority().certificate().pem());
    EXPECT_TRUE(pki::replace_credentials(file_, *credentials));
    return *credentials;
  }
  static mode_t mode(const fs::path& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  // Until the file is another one than `before`.
  pki::Credentials replaced(const pki::Credentials& before) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const Cancel never;
    while (std::chrono::steady_clock::now() < end) {
      const auto now = pki::read_credentials(file_);
      if (now && *now != before && !fs::exists(dir_ / "enrol.key")) return *now;
      (void)never.wait(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "it was not renewed";
    return before;
  }

  // Until the file is so.
  template <class Condition>
  bool becomes(Condition is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const Cancel never;
    while (std::chrono::steady_clock::now() < end) {
      const auto now = pki::read_credentials(file_);
      if (now && is_so(*now)) return true;
      (void)never.wait(std::chrono::milliseconds(5));
    }
    return false;
  }

  fs::path dir_;
  fs::path file_;
  Cancel cancel_;
};

TEST_F(EnrolAgent, Joins) {
  Door door;
  const auto joined = join_cluster(joining(door), system_clock(), cancel_);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_TRUE(*joined);
  EXPECT_EQ(mode(file_), 0600U);
  EXPECT_FALSE(fs::exists(dir_ / "enrol.key"));
  EXPECT_EQ(pki::read_credentials(file_)->identity.name, "n1");
}

TEST_F(EnrolAgent, JoinsWithTheSameKeyAfterALostAnswer) {
  std::atomic<int> times = 0;
  Door door({.most = std::chrono::milliseconds(200)}, [&](const Asked& asked, auto done) {
    if (++times > 2) done(door.issued(asked));
  });
  ASSERT_TRUE(join_cluster(joining(door), system_clock(), cancel_));
  const std::vector<Asked> asked = door.asked();
  ASSERT_GE(asked.size(), 3U);
  EXPECT_EQ(asked[0].public_key, asked[1].public_key);
  EXPECT_EQ(asked[0].public_key, asked[2].public_key);
}

TEST_F(EnrolAgent, TheKeyOutlivesTheProcess) {
  const auto first = pending_key(dir_ / "enrol.key");
  ASSERT_TRUE(first);
  EXPECT_EQ(mode(dir_ / "enrol.key"), 0600U);
  EXPECT_EQ(pending_key(dir_ / "enrol.key")->public_digest(), first->public_digest());
  Door door;
  ASSERT_TRUE(join_cluster(joining(door), system_clock(), cancel_));
  EXPECT_EQ(door.asked()[0].public_key, *first->public_der());
  // One that is damaged is worth nothing.
  ASSERT_TRUE(io::replace_file(dir_ / "enrol.key", "damaged", io::Durable::No));
  EXPECT_NE(pending_key(dir_ / "enrol.key")->public_digest(), first->public_digest());
}

TEST_F(EnrolAgent, ARefusalForGoodEndsIt) {
  Door door({}, [](const Asked&, auto done) {
    done(fail(ErrorCode::NotAllowed, "the token was used by node 'other'"));
  });
  const auto joined = join_cluster(joining(door), system_clock(), cancel_);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::NotAllowed);
  EXPECT_TRUE(joined.error().message.contains("the token was used by node 'other'"));
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(door.asked().size(), 1U);
  // The key may be revoked; the next try is with another one.
  EXPECT_FALSE(fs::exists(dir_ / "enrol.key"));
}

TEST_F(EnrolAgent, AStrangerDoesNotCostTheKey) {
  Door door;
  const Door stranger;
  JoinOptions options = joining(door);
  options.enrol = stranger.address();
  const auto key = pending_key(options.pending_key);
  const auto joined = join_cluster(options, system_clock(), cancel_);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::Unsupported) << joined.error().message;
  ASSERT_TRUE(fs::exists(options.pending_key));
  EXPECT_EQ(pending_key(options.pending_key)->public_digest(), key->public_digest());
}

TEST_F(EnrolAgent, ARefusalForNowDoesNot) {
  std::atomic<int> times = 0;
  Door door({}, [&](const Asked& asked, auto done) {
    if (++times > 3) return done(door.issued(asked));
    done(fail(ErrorCode::ResourceExhausted, "too many ask"));
  });
  EXPECT_TRUE(join_cluster(joining(door), system_clock(), cancel_));
  EXPECT_EQ(door.asked().size(), 4U);
}

TEST_F(EnrolAgent, IsCancelledWhileNobodyListens) {
  JoinOptions options;
  {
    Door door;
    options = joining(door);
  }
  options.retry_min = options.retry_max = std::chrono::hours(1);
  std::thread other([&] { cancel_.request(); });
  const auto joined = join_cluster(options, system_clock(), cancel_);
  other.join();
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_FALSE(*joined);
}

TEST_F(EnrolAgent, AWrongClockIsWaitedFor) {
  Door door;
  const WrongClock clock;
  const auto joined = join_cluster(joining(door), clock, cancel_);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(door.asked().size(), 1U) << "the controller gives only so many";
}

TEST_F(EnrolAgent, TheSentenceHasBothClocks) {
  Door door;
  const WallTime now = system_clock().now().wall, wrong = now + std::chrono::hours(24 * 400);
  const auto checked = check_clock({.credentials = keep(door, {}), .controller = now}, wrong);
  ASSERT_FALSE(checked);
  for (const std::string& time : {utc_text(now), utc_text(wrong)})
    EXPECT_TRUE(checked.error().message.contains(time)) << checked.error().message;
}

TEST_F(EnrolAgent, ACertificateThatIsNotItsOwnIsRefused) {
  Door door({}, [&](const Asked& asked, auto done) {
    Asked other = asked;
    other.node = "n2";
    done(door.issued(other));
  });
  const auto joined = join_cluster(joining(door), system_clock(), cancel_);
  ASSERT_FALSE(joined);
  EXPECT_TRUE(joined.error().message.contains("it is of node 'n2'")) << joined.error().message;
}

TEST_F(EnrolAgent, TheTimeOfARenewal) {
  const WallTime now = system_clock().now().wall;
  const pki::Credentials credentials{.not_before = now - std::chrono::hours(24),
                                     .not_after = now + std::chrono::hours(24 * 30)};
  EXPECT_EQ(renewal_time(credentials, 0), now + std::chrono::hours(24 * 20));
  EXPECT_EQ(renewal_time(credentials, 1), now + std::chrono::hours(24 * 20 + 60));
  EXPECT_EQ(renewal_time({.not_before = now, .not_after = now}, 1), now);
}

TEST_F(EnrolAgent, RenewsAtTwoThirds) {
  Door door;
  const auto before = keep(door, std::chrono::minutes(46));
  {
    Renewal renewal(renewing(door), system_clock());
    const auto after = replaced(before);
    EXPECT_GT(after.not_after, before.not_after);
    EXPECT_NE(after.key_pem, before.key_pem);
    EXPECT_EQ(mode(file_), 0600U);
  }
  EXPECT_EQ(door.asked().size(), 1U) << "again, though it is new";
}

TEST_F(EnrolAgent, RenewsWhatHasEnded) {
  Door door;
  const auto before = keep(door, std::chrono::hours(5));
  Renewal renewal(renewing(door), system_clock());
  EXPECT_TRUE(replaced(before).check_time(system_clock().now().wall));
}

TEST_F(EnrolAgent, IsNotRenewedBefore) {
  Door door;
  keep(door, std::chrono::minutes(39));
  Renewal renewal(renewing(door), system_clock());
  renewal.stop();
  EXPECT_TRUE(door.asked().empty());
}

TEST_F(EnrolAgent, ARenewalIsTriedUntilItSucceeds) {
  std::atomic<int> times = 0;
  Door door({}, [&](const Asked& asked, auto done) {
    if (++times > 4) return done(door.issued(asked));
    done(fail(times % 2 == 0 ? ErrorCode::NotAllowed : ErrorCode::ResourceExhausted, "not now"));
  });
  const auto before = keep(door, std::chrono::minutes(50));
  Renewal renewal(renewing(door), system_clock());
  replaced(before);
  const std::vector<Asked> asked = door.asked();
  ASSERT_EQ(asked.size(), 5U);
  // After a refusal for good with another key: the one before may be revoked.
  EXPECT_EQ(asked[1].public_key, asked[0].public_key);
  EXPECT_NE(asked[2].public_key, asked[0].public_key);
  EXPECT_EQ(asked[3].public_key, asked[2].public_key);
  EXPECT_NE(asked[4].public_key, asked[2].public_key);
}

TEST_F(EnrolAgent, WhatCannotBeWrittenIsAskedForOnce) {
  Door door;
  const auto before = keep(door, std::chrono::minutes(50));
  RenewalOptions options = renewing(door);
  WrongClock clock;  // by which the certificate has ended, and the new one as well
  Renewal renewal(options, clock);
  replaced(before);
  renewal.stop();
  EXPECT_EQ(door.asked().size(), 1U);
}

TEST_F(EnrolAgent, AKeyThatIsInTheFileAlreadyIsNotThePendingOne) {
  Door door;
  const auto before = keep(door, std::chrono::minutes(50));
  // The agent died between its last two acts.
  ASSERT_TRUE(io::replace_file(dir_ / "enrol.key", before.key_pem, io::Durable::No));
  Renewal renewal(renewing(door), system_clock());
  EXPECT_NE(replaced(before).key_pem, before.key_pem);
}

TEST_F(EnrolAgent, TheCertificateOfAnotherNodeIsNotRenewed) {
  Door door;
  keep(door, std::chrono::minutes(50), "n2");
  Renewal renewal(renewing(door), system_clock());
  renewal.stop();
  EXPECT_TRUE(door.asked().empty());
}

// --- a change of the CA -------------------------------------------------------------------------

TEST_F(EnrolAgent, TheFileGetsTheCasThatTheControllerNames) {
  Door door;
  const pki::Credentials before = keep(door, Duration::zero());
  const auto next = *pki::Authority::make("c1", system_clock().now().wall);
  RenewalOptions options = renewing(door);
  options.enrol.clear();
  Renewal renewal(options, system_clock());
  const std::string both = door.authority().certificate().pem() + next.certificate().pem();
  renewal.trust(both, door.authority().certificate().digest());
  ASSERT_TRUE(becomes([&](const pki::Credentials& now) { return now.ca_pem == both; }));
  EXPECT_EQ(pki::read_credentials(file_)->certificate_pem, before.certificate_pem);
  EXPECT_EQ(mode(file_), 0600U);
  // What would make the file useless is not written.
  renewal.trust(next.certificate().pem(), next.certificate().digest());
  renewal.trust("no PEM", "");
  renewal.stop();
  EXPECT_EQ(pki::read_credentials(file_)->ca_pem, both);
}

TEST_F(EnrolAgent, ACertificateOfACaThatSignsNoMoreIsRenewedAtOnce) {
  const auto next = *pki::Authority::make("c1", system_clock().now().wall);
  std::string both;
  Door door({}, [&](const Asked& asked, auto done) {
    const auto made = next.issue(*pki::Key::from_public_der(asked.public_key),
                                 {.cluster = "c1", .role = pki::Role::Node, .name = "n1"},
                                 system_clock().now().wall, std::chrono::hours(1));
    done(controller::EnrolmentAnswer{.certificate = made->pem(), .ca = both});
  });
  both = next.certificate().pem() + door.authority().certificate().pem();
  (void)keep(door, Duration::zero());
  Renewal renewal(renewing(door), system_clock());
  renewal.trust(both, next.certificate().digest());
  ASSERT_TRUE(becomes(
      [&](const pki::Credentials& now) { return *now.signer() == next.certificate().digest(); }));
  renewal.stop();
  EXPECT_EQ(pki::read_credentials(file_)->ca_pem, both);
}

TEST_F(EnrolAgent, ANodeThatIsNotAnsweredAsksOnlyIfTheCaWasBeingChanged) {
  const auto next = *pki::Authority::make("c1", system_clock().now().wall);
  std::atomic<int> questions = 0;
  std::string both;
  Door door({}, [&](const Asked& asked, auto done) {
    ++questions;
    const auto made = next.issue(*pki::Key::from_public_der(asked.public_key),
                                 {.cluster = "c1", .role = pki::Role::Node, .name = "n1"},
                                 system_clock().now().wall, std::chrono::hours(1));
    done(controller::EnrolmentAnswer{.certificate = made->pem(), .ca = both});
  });
  both = next.certificate().pem() + door.authority().certificate().pem();
  pki::Credentials own = keep(door, Duration::zero());
  {
    Renewal renewal(renewing(door), system_clock());
    renewal.unreached();
    renewal.stop();
    EXPECT_EQ(questions, 0) << "it knows one CA";
  }
  own.ca_pem += next.certificate().pem();
  ASSERT_TRUE(pki::replace_credentials(file_, own));
  Renewal renewal(renewing(door), system_clock());
  renewal.unreached();
  ASSERT_TRUE(becomes(
      [&](const pki::Credentials& now) { return *now.signer() == next.certificate().digest(); }));
  renewal.stop();
}

TEST_F(EnrolAgent, ANodeThatIsNotAnsweredRenewsOnce) {
  const auto next = *pki::Authority::make("c1", system_clock().now().wall);
  std::string both;
  Door door({}, [&](const Asked& asked, auto done) {
    auto answer = *door.issued(asked);
    answer.ca = both;
    done(std::move(answer));
  });
  both = door.authority().certificate().pem() + next.certificate().pem();
  pki::Credentials own = keep(door, Duration::zero());
  own.ca_pem += next.certificate().pem();
  ASSERT_TRUE(pki::replace_credentials(file_, own));
  Renewal renewal(renewing(door), system_clock());
  renewal.unreached();
  (void)replaced(own);
  // The controller's port for agents does not come back.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const Cancel never;
  while (std::chrono::steady_clock::now() < end) {
    renewal.unreached();
    (void)never.wait(std::chrono::milliseconds(5));
  }
  renewal.stop();
  EXPECT_EQ(door.asked().size(), 1U);
}

}  // namespace
}  // namespace muster::agent
