#include "common/pki/certificate.h"

#include <gtest/gtest.h>
#include <openssl/err.h>

#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

std::string identity_refusal(const Forged& forged) {
  const auto identity = must(Certificate::from_pem(forged_pem(forged))).identity();
  if (!identity) {
    EXPECT_EQ(identity.error().code, ErrorCode::InvalidArgument);
  }
  return refusal(identity);
}

TEST(Certificate, ComesBackFromItsPem) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Key key = must(Key::generate());
  const Certificate made = must(authority.issue(key, kNode, kNow, 30 * kDay));
  const Certificate read = must(Certificate::from_pem("a comment\n" + made.pem()));
  EXPECT_EQ(read.pem(), made.pem());
  EXPECT_EQ(read.serial(), made.serial());
  EXPECT_EQ(read.public_digest(), key.public_digest());
  EXPECT_EQ(read.not_before(), kNow - kDay);
  EXPECT_EQ(read.not_after(), kNow + 30 * kDay);
  EXPECT_EQ(read.common_name(), "node n1");
  EXPECT_FALSE(read.is_ca());
  EXPECT_EQ(must(read.identity()), kNode);
}

TEST(Certificate, WhatIsNoneIsRefused) {
  const std::string pem = forged_pem({});
  EXPECT_EQ(refusal(Certificate::from_pem("")),
            "reading the certificate: it must be one PEM block 'CERTIFICATE', and there are 0");
  EXPECT_EQ(refusal(Certificate::from_pem(pem + pem)),
            "reading the certificate: it must be one PEM block 'CERTIFICATE', and there are 2");
  EXPECT_EQ(refusal(Certificate::from_pem(must(must(Key::generate()).public_pem()))),
            "reading the certificate: it must be one PEM block 'CERTIFICATE', and it is 'PUBLIC "
            "KEY'");
  EXPECT_EQ(refusal(Certificate::from_pem(pem.substr(0, 100))),
            "reading the certificate: the PEM block 'CERTIFICATE' has no end");
  EXPECT_EQ(refusal(Certificate::from_pem(pem + std::string(16 << 10, '\n'))),
            "reading the certificate: more than 16384 bytes");
  std::string damaged = pem;
  damaged.erase(damaged.find('\n') + 1, 4);
  EXPECT_TRUE(refusal(Certificate::from_pem(damaged))
                  .starts_with("reading the certificate: it does not decode: "))
      << refusal(Certificate::from_pem(damaged));
}

// Regression: 64 bits of nanoseconds end in 2262.
TEST(Certificate, AnEndThatWallTimeCannotSayIsTheLastMoment) {
  const Certificate certificate =
      must(Certificate::from_pem(forged_pem({.not_after = "99991231235959Z"})));
  EXPECT_EQ(certificate.not_after(), std::chrono::floor<std::chrono::seconds>(WallTime::max()));
  EXPECT_EQ(utc_text(certificate.not_before()), "2026-01-01T00:00:00Z");
  EXPECT_EQ(certificate.serial(), "07");
}

TEST(Certificate, ACommonNameMayBeMissing) {
  EXPECT_EQ(must(Certificate::from_pem(forged_pem({.common_name = ""}))).common_name(), "");
}

TEST(Certificate, ItsIdentityIsItsOneUri) {
  const Certificate certificate =
      must(Certificate::from_pem(forged_pem({.uris = {"muster://c0ffee/user/ann"}})));
  EXPECT_EQ(must(certificate.identity()), kUser);
}

TEST(Certificate, WithoutExactlyOneSoundNameItHasNoIdentity) {
  const std::string none =
      "reading the certificate 'forged': it has no name that starts with muster://; muster did not "
      "issue it";
  EXPECT_EQ(identity_refusal({}), none);
  for (const char* uri :
       {"spiffe://c0ffee/node/n1", "MUSTER://c0ffee/node/n1", "https://example.org/muster://"})
    EXPECT_EQ(identity_refusal({.uris = {uri}}), none) << uri;
  // Regression: it was user 'ann' here, and nobody at the port of the controller.
  EXPECT_EQ(identity_refusal({.uris = {"spiffe://c0ffee/ann", "muster://c0ffee/user/ann"}}),
            "reading the certificate 'forged': it must have one name, and has 2, "
            "'spiffe://c0ffee/ann' and 'muster://c0ffee/user/ann' among them")
      << "those of others count, too";
  EXPECT_EQ(identity_refusal({.uris = {"muster://c0ffee/node/n1", "muster://c0ffee/node/n2",
                                       "muster://c0ffee/node/n3"}}),
            "reading the certificate 'forged': it must have one name, and has 3, "
            "'muster://c0ffee/node/n1' and 'muster://c0ffee/node/n2' among them");
  EXPECT_EQ(identity_refusal({.uris = {"muster://c0ffee/node/n1", "muster://"}}),
            "reading the certificate 'forged': it must have one name, and has 2, "
            "'muster://c0ffee/node/n1' and 'muster://' among them")
      << "an unsound one counts, too";
  EXPECT_EQ(identity_refusal({.common_name = "for\x1bged",
                              .uris = {std::string("muster://c0ffee/node/n1\0.x", 26)}}),
            "reading the certificate 'for?ged': reading the name 'muster://c0ffee/node/n1?.x' of a "
            "certificate: it is not muster://CLUSTER/controller, muster://CLUSTER/node/NAME or "
            "muster://CLUSTER/user/NAME");
  EXPECT_EQ(identity_refusal({.raw_names = "\x30\x7f\x01"}),
            "reading the certificate 'forged': its alternative names are damaged");
}

TEST(Certificate, IsSignedByTheKeyThatSignedIt) {
  const Authority authority = must(Authority::make("c0ffee", kNow)),
                  namesake = must(Authority::make("c0ffee", kNow));
  const Certificate certificate = issued(authority, kNode);
  EXPECT_TRUE(certificate.is_signed_by(authority.certificate()));
  EXPECT_FALSE(certificate.is_signed_by(namesake.certificate()));
  EXPECT_FALSE(authority.certificate().is_signed_by(certificate));
  EXPECT_TRUE(authority.certificate().is_signed_by(authority.certificate()));
  EXPECT_EQ(::ERR_peek_error(), 0U) << "TLS on this thread would take it as its own";
}

TEST(Certificate, CountsFromItsFirstToItsLastMoment) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Certificate certificate = issued(authority, kNode);
  const Duration second = std::chrono::seconds(1);
  EXPECT_TRUE(certificate.check_time(kNow - kDay));
  EXPECT_TRUE(certificate.check_time(kNow));
  EXPECT_TRUE(certificate.check_time(kNow + 30 * kDay));
  const auto fault = [&](WallTime now) {
    return time_fault(must(certificate.identity()), certificate.not_before(),
                      certificate.not_after(), now);
  };
  EXPECT_EQ(fault(kNow), "");
  // For a log that has each cause once: the same at each moment.
  for (const WallTime now : {kNow + 30 * kDay + second, kNow + 300 * kDay}) {
    EXPECT_EQ(fault(now), "the certificate of node 'n1' ended at 2026-12-26T10:00:00Z");
    EXPECT_EQ(without_clock("using it: " + refusal(certificate.check_time(now))),
              "using it: " + fault(now));
  }
  EXPECT_EQ(without_clock("any other"), "any other");
  const auto early = certificate.check_time(kNow - kDay - second);
  EXPECT_EQ(
      refusal(early),
      "the certificate of node 'n1' is valid from 2026-11-25T10:00:00Z on, and this machine's "
      "clock says 2026-11-25T09:59:59Z: set the clock");
  EXPECT_EQ(early.error().code, ErrorCode::NotAllowed);
  const auto late = certificate.check_time(kNow + 30 * kDay + second);
  EXPECT_EQ(
      refusal(late),
      "the certificate of node 'n1' ended at 2026-12-26T10:00:00Z, and this machine's clock says "
      "2026-12-26T10:00:01Z; a new one is made by `muster cert issue`, or set the clock, if "
      "it is wrong");
  EXPECT_EQ(late.error().code, ErrorCode::NotAllowed);
  EXPECT_TRUE(refusal(issued(authority, kController).check_time(kNow - 2 * kDay))
                  .starts_with("the certificate of the controller is valid from "));
  EXPECT_TRUE(refusal(must(Certificate::from_pem(forged_pem({}))).check_time(kNow))
                  .starts_with("reading the certificate 'forged': it has no name"));
}

}  // namespace
}  // namespace muster::pki
