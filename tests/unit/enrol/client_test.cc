// Both halves of the enrolment port against each other, over loopback.
#include <gtest/gtest.h>

#include <thread>

#include "common/io/unique_fd.h"
#include "tests/unit/enrol/door.h"

#include <sys/eventfd.h>

namespace muster {
namespace {

using test::Asked;
using test::Door;

pki::Key made_key() { return *pki::Key::generate(); }

TEST(EnrolClient, JoinsWithAToken) {
  Door door;
  const pki::Key key = made_key();
  const auto issued = enrol::join({.address = door.address()}, door.token(), "n1", key);
  ASSERT_TRUE(issued) << issued.error().message;
  const auto credentials =
      pki::parse_credentials(*key.private_pem() + issued->certificate_pem + issued->ca_pem);
  ASSERT_TRUE(credentials) << credentials.error().message;
  EXPECT_EQ(credentials->identity.name, "n1");
  EXPECT_LT(std::chrono::abs(issued->time - system_clock().now().wall), std::chrono::minutes(5));
  const std::vector<Asked> asked = door.asked();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].node, "n1");
  EXPECT_EQ(asked[0].token, "t1");
  EXPECT_EQ(asked[0].secret, "planted-secret");
  EXPECT_EQ(asked[0].public_key, *key.public_der());
}

TEST(EnrolClient, RenewsAlsoACertificateThatHasEnded) {
  Door door;
  const pki::Key present = made_key(), next = made_key();
  const auto ended = door.authority().issue(
      present, {.cluster = "c1", .role = pki::Role::Node, .name = "n1"},
      system_clock().now().wall - std::chrono::hours(20), std::chrono::hours(1));
  ASSERT_TRUE(ended);
  const auto own = pki::parse_credentials(*present.private_pem() + ended->pem() +
                                          door.authority().certificate().pem());
  ASSERT_TRUE(own);
  const auto issued = enrol::renew({.address = door.address()}, *own, next);
  ASSERT_TRUE(issued) << issued.error().message;
  ASSERT_EQ(door.asked().size(), 1U);
  EXPECT_EQ(door.asked()[0].registered, present.public_digest());
  EXPECT_EQ(door.asked()[0].public_key, *next.public_der());
}

TEST(EnrolClient, RefusesAControllerOfAnotherCa) {
  Door door;
  enrol::Token token = door.token();
  token.ca_digest = std::string(64, '0');
  const auto issued = enrol::join({.address = door.address()}, token, "n1", made_key());
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::Unsupported);
  EXPECT_NE(issued.error().message.find("another cluster's controller"), std::string::npos)
      << issued.error().message;
  EXPECT_TRUE(door.asked().empty()) << "the secret went to a stranger";
}

TEST(EnrolClient, RefusalsAreFinalOrNot) {
  for (const auto& [given, wanted] :
       {std::pair(ErrorCode::NotAllowed, ErrorCode::NotAllowed),
        std::pair(ErrorCode::InvalidArgument, ErrorCode::NotAllowed),
        std::pair(ErrorCode::ResourceExhausted, ErrorCode::ResourceExhausted),
        std::pair(ErrorCode::DataLoss, ErrorCode::ResourceExhausted)}) {
    Door door({}, [code = given](const Asked&, auto done) {
      done(fail(code, "a sentence\x1b[2J of the controller"));
    });
    const auto issued = enrol::join({.address = door.address()}, door.token(), "n1", made_key());
    ASSERT_FALSE(issued);
    EXPECT_EQ(issued.error().code, wanted);
    EXPECT_NE(issued.error().message.find("a sentence?[2J of the controller"), std::string::npos)
        << issued.error().message;
    EXPECT_EQ(issued.error().message.find("planted-secret"), std::string::npos);
  }
}

TEST(EnrolClient, AnAnswerThatNoFrameHoldsIsARefusal) {
  Door door({}, [](const Asked&, auto done) {
    done(controller::EnrolmentAnswer{.certificate = "one", .ca = std::string(20'000, 'x')});
  });
  const auto issued = enrol::join({.address = door.address()}, door.token(), "n1", made_key());
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(issued.error().message.contains("is the certificate of the CA long?"))
      << issued.error().message;
}

TEST(EnrolClient, AnswersFromAnotherThreadAndAfterTheEnd) {
  controller::Enrolments::Done late_answer;
  std::thread answers;
  Door door({}, [&](const Asked& asked, auto done) {
    if (asked.node == "n1") {
      answers = std::thread(
          [&door, asked, done = std::move(done)]() mutable { done(door.issued(asked)); });
    } else {
      late_answer = std::move(done);
    }
  });
  EXPECT_TRUE(enrol::join({.address = door.address()}, door.token(), "n1", made_key()));
  answers.join();
  const auto late = enrol::join({.address = door.address(), .most = std::chrono::milliseconds(300)},
                                door.token(), "n2", made_key());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::TimedOut) << late.error().message;
  door.stop();
  ASSERT_TRUE(late_answer);
  late_answer(fail(ErrorCode::Internal, "too late"));
}

TEST(EnrolClient, ThePortEndsWhatTheControllerDoesNotAnswer) {
  Door door({.most = std::chrono::milliseconds(300)}, [](const Asked&, auto) {});
  const auto issued = enrol::join({.address = door.address(), .most = std::chrono::seconds(60)},
                                  door.token(), "n1", made_key());
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::Unreachable) << issued.error().message;
}

TEST(EnrolClient, CanBeCancelled) {
  const io::UniqueFd cancel(::eventfd(0, EFD_CLOEXEC));
  Door door({}, [&](const Asked&, auto) { (void)::eventfd_write(cancel.get(), 1); });
  const auto issued = enrol::join(
      {.address = door.address(), .most = std::chrono::seconds(60), .cancel = cancel.get()},
      door.token(), "n1", made_key());
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::TimedOut);
}

TEST(EnrolClient, NobodyListens) {
  std::string address;
  enrol::Token token;
  {
    Door door;
    address = door.address();
    token = door.token();
  }
  const auto issued = enrol::join({.address = address}, token, "n1", made_key());
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::Unreachable);
  EXPECT_EQ(enrol::join({.address = "no-port"}, token, "n1", made_key()).error().code,
            ErrorCode::InvalidArgument);
}

// While the CA is changed, tokens of both CAs are worth something.
TEST(EnrolPort, ShowsTheCertificateThatTheClientWants) {
  Door door;
  const WallTime now = system_clock().now().wall;
  const auto next = *pki::Authority::make("c1", now);
  const auto old_own = *pki::issue_controller(door.authority(), "c1", now);
  const auto next_own = *pki::issue_controller(next, "c1", now);
  enrol::Token of_next = door.token();
  of_next.ca_digest = next.certificate().digest();
  const auto refused = enrol::join({.address = door.address()}, of_next, "n1", made_key());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_TRUE(refused.error().message.contains("the cluster's CA was changed meanwhile"))
      << refused.error().message;

  ASSERT_TRUE(door.show({old_own, next_own}));
  EXPECT_TRUE(enrol::join({.address = door.address()}, of_next, "n1", made_key()));
  EXPECT_TRUE(enrol::join({.address = door.address()}, door.token(), "n2", made_key()));

  ASSERT_TRUE(door.show({next_own}));
  EXPECT_TRUE(enrol::join({.address = door.address()}, of_next, "n3", made_key()));
  EXPECT_FALSE(enrol::join({.address = door.address()}, door.token(), "n4", made_key()));
}

TEST(EnrolPort, TellsWhereItCannotListen) {
  Door door;
  const auto own = pki::issue_controller(door.authority(), "c1", system_clock().now().wall);
  const auto second = controller::EnrolPort::start(door.address(), *own, {}, system_clock());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(door.address()), std::string::npos);
}

}  // namespace
}  // namespace muster
