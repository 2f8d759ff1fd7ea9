#include "common/pki/authority.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

// X509_V_OK, or why a TLS peer that trusts only this CA refuses the certificate. The other side may
// send one more certificate, `between`.
int verified(const Authority& authority, const Certificate& certificate, int purpose,
             WallTime now = kNow, const Certificate* between = nullptr) {
  X509_STORE* store = ::X509_STORE_new();
  X509_STORE_CTX* context = ::X509_STORE_CTX_new();
  STACK_OF(X509)* sent = sk_X509_new_null();
  if (between != nullptr) must(sk_X509_push(sent, between->get()) > 0);
  must(::X509_STORE_add_cert(store, authority.certificate().get()) == 1 &&
       ::X509_STORE_CTX_init(context, store, certificate.get(), sent) == 1);
  X509_VERIFY_PARAM* parameters = ::X509_STORE_CTX_get0_param(context);
  must(::X509_VERIFY_PARAM_set_purpose(parameters, purpose) == 1 &&
       ::X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT) == 1);
  ::X509_VERIFY_PARAM_set_time(
      parameters, std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
  const bool sound = ::X509_verify_cert(context) == 1;
  const int error = ::X509_STORE_CTX_get_error(context);
  EXPECT_EQ(sound, error == X509_V_OK);
  ::X509_STORE_CTX_free(context);
  sk_X509_free(sent);
  ::X509_STORE_free(store);
  return error;
}

// 1: critical, 0: not critical, -1: missing.
int critical(const Certificate& certificate, int nid) {
  const int at = ::X509_get_ext_by_NID(certificate.get(), nid, -1);
  return at < 0 ? -1 : ::X509_EXTENSION_get_critical(::X509_get_ext(certificate.get(), at));
}

std::string bytes_of(const ASN1_OCTET_STRING* text) {
  if (text == nullptr) return "(none)";
  return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(::ASN1_STRING_length(text))};
}

bool is_for_host(const Certificate& certificate, const std::string& host) {
  return ::X509_check_host(certificate.get(), host.data(), host.size(), 0, nullptr) == 1;
}

TEST(Authority, IsAnOwnCaOfItsClusterForTwentyYears) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Certificate& ca = authority.certificate();
  EXPECT_EQ(authority.cluster(), "c0ffee");
  EXPECT_EQ(ca.common_name(), "muster c0ffee");
  EXPECT_TRUE(ca.is_ca());
  EXPECT_EQ(ca.not_before(), kNow - kDay);
  EXPECT_EQ(utc_text(ca.not_after()), "2046-11-26T06:24:00Z") << "20 years of 365.2425 days";
  EXPECT_EQ(::X509_self_signed(ca.get(), 1), 1);
  EXPECT_EQ(::X509_get_pathlen(ca.get()), 0);
  EXPECT_EQ(critical(ca, NID_basic_constraints), 1);
  EXPECT_EQ(critical(ca, NID_key_usage), 1);
  EXPECT_EQ(::X509_get_key_usage(ca.get()), std::uint32_t{KU_KEY_CERT_SIGN | KU_CRL_SIGN});
  EXPECT_NE(::X509_get0_subject_key_id(ca.get()), nullptr);
  EXPECT_FALSE(ca.identity()) << "the CA speaks for nobody";
}

TEST(Authority, ComesBackFromItsTwoTexts) {
  const Authority made = must(Authority::make("c0ffee", kNow));
  const Authority loaded = must(Authority::load(made.certificate().pem(), must(made.key_pem())));
  EXPECT_EQ(loaded.cluster(), "c0ffee");
  EXPECT_EQ(loaded.certificate().pem(), made.certificate().pem());
  EXPECT_EQ(must(loaded.key_pem()), must(made.key_pem()));
  EXPECT_EQ(verified(made, issued(loaded, kNode), X509_PURPOSE_SSL_CLIENT), X509_V_OK);
}

TEST(Authority, MakesNoneForWhatIsNoClusterId) {
  const std::string longest(57, 'a');
  const Authority authority = must(Authority::make(longest, kNow));
  EXPECT_EQ(
      must(Authority::load(authority.certificate().pem(), must(authority.key_pem()))).cluster(),
      longest);
  for (const std::string& cluster : {std::string(), std::string("C0FFEE"), std::string("a/b"),
                                     std::string("a,CA:TRUE"), longest + "a"}) {
    const auto refused = Authority::make(cluster, kNow);
    EXPECT_EQ(refusal(refused), "making a CA for cluster '" + cluster +
                                    "': a cluster id of a CA has 1 to 57 of a-z and 0-9");
  }
}

TEST(Authority, LoadsOnlyACaOfMusterWithItsKey) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Key key = must(Key::generate());
  const std::string key_pem = must(key.private_pem());
  const auto load = [&](const std::string& ca) { return refusal(Authority::load(ca, key_pem)); };
  EXPECT_EQ(load(authority.certificate().pem()),
            "reading the CA's certificate 'muster c0ffee': the private key is that of another one");
  EXPECT_EQ(load(forged_pem({.common_name = "muster c0ffee"}, key)),
            "reading the CA's certificate 'muster c0ffee': it is not the certificate of a CA");
  for (const char* name : {"Corporate CA", "muster", "muster ", "muster C0FFEE", "xmuster c0ffee"})
    EXPECT_EQ(load(forged_pem({.common_name = name, .basic_constraints = "CA:TRUE"}, key)),
              "reading the CA's certificate '" + std::string(name) +
                  "': the CA of a cluster has the name 'muster CLUSTER'");
  EXPECT_TRUE(load("x").starts_with("reading the certificate: "));
  EXPECT_TRUE(refusal(Authority::load(authority.certificate().pem(), "x"))
                  .starts_with("reading the private key: "));
  EXPECT_TRUE(refusal(Authority::load(authority.certificate().pem(), must(key.public_pem())))
                  .starts_with("reading the private key: "));
}

TEST(Issue, ANodeAndAUserAreClientsAndNothingElse) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  for (const Identity& identity : {kNode, kUser}) {
    const Certificate certificate = issued(authority, identity);
    EXPECT_EQ(must(certificate.identity()), identity);
    EXPECT_EQ(certificate.common_name(), identity == kNode ? "node n1" : "user ann");
    EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
    EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_SERVER),
              X509_V_ERR_INVALID_PURPOSE);
    EXPECT_EQ(::X509_get_extended_key_usage(certificate.get()), std::uint32_t{XKU_SSL_CLIENT});
    EXPECT_FALSE(is_for_host(certificate, controller_host("c0ffee")));
  }
}

TEST(Issue, TheControllerIsAServerAndNothingElse) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Certificate certificate = issued(authority, kController);
  EXPECT_EQ(must(certificate.identity()), kController);
  EXPECT_EQ(certificate.common_name(), "controller");
  EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_CLIENT), X509_V_ERR_INVALID_PURPOSE);
  EXPECT_EQ(::X509_get_extended_key_usage(certificate.get()), std::uint32_t{XKU_SSL_SERVER});
  EXPECT_TRUE(is_for_host(certificate, "controller.c0ffee.muster"));
  EXPECT_FALSE(is_for_host(certificate, "controller.c0ffef.muster"));
  EXPECT_FALSE(is_for_host(certificate, "controller")) << "the common name is no host";
}

TEST(Issue, EveryCertificateSaysThatItSignsNoOthers) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  std::set<std::string> serials, keys;
  for (const Identity& identity : {kController, kNode, kUser}) {
    const Certificate certificate = issued(authority, identity);
    EXPECT_FALSE(certificate.is_ca());
    EXPECT_EQ(critical(certificate, NID_basic_constraints), 1);
    EXPECT_EQ(critical(certificate, NID_key_usage), 1);
    EXPECT_EQ(::X509_get_key_usage(certificate.get()), std::uint32_t{KU_DIGITAL_SIGNATURE});
    EXPECT_EQ(bytes_of(::X509_get0_authority_key_id(certificate.get())),
              bytes_of(::X509_get0_subject_key_id(authority.certificate().get())));
    EXPECT_NE(bytes_of(::X509_get0_subject_key_id(certificate.get())), "(none)");
    EXPECT_EQ(::X509_get_version(certificate.get()), X509_VERSION_3);
    EXPECT_EQ(certificate.serial().size(), 32U) << certificate.serial();
    EXPECT_NE(certificate.serial().front(), '-');
    serials.insert(certificate.serial());
    keys.insert(certificate.public_digest());
  }
  EXPECT_EQ(serials.size(), 3U);
  EXPECT_EQ(keys.size(), 3U);
}

TEST(Issue, WhatACertificateSignsIsNotVerified) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Key key = must(Key::generate());
  const Certificate node = must(authority.issue(key, kNode, kNow, kDay));
  EXPECT_TRUE(refusal(Authority::load(node.pem(), must(key.private_pem())))
                  .ends_with("it is not the certificate of a CA"));
  const Certificate forged = must(Certificate::from_pem(
      forged_pem({.common_name = "user ann", .uris = {uri_of(kUser)}, .issuer = &node}, key)));
  EXPECT_EQ(::X509_verify(forged.get(), key.get()), 1);
  EXPECT_NE(verified(authority, forged, X509_PURPOSE_SSL_CLIENT, kNow, &node), X509_V_OK);
}

TEST(Issue, AnotherAuthorityDoesNotVerifyIt) {
  const Authority own = must(Authority::make("c0ffee", kNow));
  const Authority same_name = must(Authority::make("c0ffee", kNow));
  const Authority other = must(Authority::make("beef", kNow));
  const Certificate certificate = issued(own, kNode);
  EXPECT_EQ(verified(own, certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  for (const Authority* stranger : {&same_name, &other})
    EXPECT_EQ(verified(*stranger, certificate, X509_PURPOSE_SSL_CLIENT),
              X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
}

TEST(Issue, ItsTimeBeginsADayEarlierAndEndsWithTheCa) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Key key = must(Key::generate());
  const WallTime ca_end = authority.certificate().not_after();
  const auto issue = [&](WallTime now, Duration lifetime) {
    return must(authority.issue(key, kNode, now, lifetime));
  };
  const Certificate certificate = issue(kNow + std::chrono::milliseconds(1'500), kDay);
  EXPECT_EQ(certificate.not_before(), kNow - kDay + std::chrono::seconds(1));
  EXPECT_EQ(certificate.not_after(), kNow + kDay + std::chrono::seconds(1));
  EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_CLIENT, kNow - 2 * kDay),
            X509_V_ERR_CERT_NOT_YET_VALID);
  EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_CLIENT, kNow + 2 * kDay),
            X509_V_ERR_CERT_HAS_EXPIRED);
  EXPECT_EQ(issue(kNow, Duration::max()).not_after(), ca_end);
  EXPECT_EQ(issue(ca_end - kDay, kDay).not_after(), ca_end);
  EXPECT_EQ(issue(ca_end - kDay, 2 * kDay).not_after(), ca_end);
  EXPECT_EQ(issue(ca_end - 2 * kDay, kDay).not_after(), ca_end - kDay);
}

TEST(Issue, TheLongestNameIsWholeInTheUri) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Identity identity{.cluster = "c0ffee", .role = Role::Node, .name = std::string(63, 'n')};
  const Certificate certificate = issued(authority, identity);
  EXPECT_EQ(must(certificate.identity()), identity);
  EXPECT_EQ(certificate.common_name(), "node " + std::string(59, 'n')) << "X.509 allows 64";
  EXPECT_EQ(verified(authority, certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
}

TEST(Issue, APublicKeyIsEnough) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Key pair = must(Key::generate());
  const Key half = must(Key::from_public_pem(must(pair.public_pem())));
  EXPECT_EQ(must(authority.issue(half, kNode, kNow, kDay)).public_digest(), pair.public_digest());
}

TEST(Issue, RefusalsSayWhatIsWrong) {
  const Authority authority = must(Authority::make("c0ffee", kNow));
  const Key key = must(Key::generate());
  const auto issue = [&](const Identity& identity, WallTime now = kNow, Duration lifetime = kDay) {
    return authority.issue(key, identity, now, lifetime);
  };
  const auto other = issue({.cluster = "beef", .role = Role::Node, .name = "n1"});
  EXPECT_EQ(refusal(other), "it is of cluster 'beef', and this is the CA of cluster 'c0ffee'");
  EXPECT_EQ(other.error().code, ErrorCode::NotAllowed);
  EXPECT_EQ(refusal(issue({.cluster = "c0ffee", .role = Role::Controller, .name = "n1"})),
            "the controller has no name of its own");
  for (const char* name : {"", "..", "n1,URI:muster://c0ffee/user/root", "n1/x"}) {
    const auto refused = issue({.cluster = "c0ffee", .role = Role::User, .name = name});
    EXPECT_TRUE(refusal(refused).starts_with("reading the name 'muster://c0ffee/user/"))
        << refusal(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  }
  for (const Duration lifetime : {Duration::zero(), Duration::min()})
    EXPECT_EQ(refusal(issue(kNode, kNow, lifetime)), "its lifetime must be more than 0");
  const std::string span =
      "the CA's certificate is valid from 2026-11-25T10:00:00Z to 2046-11-26T06:24:00Z, and this "
      "machine's clock says ";
  EXPECT_EQ(refusal(issue(kNode, kNow - 2 * kDay)),
            span + "2026-11-24T10:00:00Z: set the clock, if it is wrong");
  EXPECT_EQ(refusal(issue(kNode, authority.certificate().not_after())),
            span + "2046-11-26T06:24:00Z: set the clock, if it is wrong");
}

}  // namespace
}  // namespace muster::pki
