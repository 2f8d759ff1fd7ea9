// Authority is the certificate authority (CA) of a cluster: a key, and the certificate by which
// everybody in the cluster checks the certificates of the others. It issues certificates and keeps
// no record of them. Values and arguments only, no files (authority_dir.h has those). A const
// Authority may issue on any thread; a signature takes a fraction of a millisecond.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/certificate.h"
#include "common/pki/identity.h"
#include "common/pki/key.h"

namespace muster::pki {

// The clocks of a cluster may be apart by this: certificates begin so long before they are made.
inline constexpr Duration kClockDifference = std::chrono::hours(24);

class Authority {
 public:
  // A new CA for 20 years. Errors: InvalidArgument when `cluster` is no id, or longer than 57
  // characters: then the name of the CA is longer than X.509 allows.
  static Result<Authority> make(std::string_view cluster, WallTime now);
  static Result<Authority> make(Key key, std::string_view cluster, WallTime now);
  // What make() made, from its two texts. Errors: InvalidArgument.
  static Result<Authority> load(std::string_view ca_pem, std::string_view key_pem);

  // One that was made elsewhere, for this cluster. Its name does not matter. `ca_pem` is one
  // certificate of a CA that may sign certificates and has a subject key identifier; `key_pem` is
  // its private key, ECDSA on P-256, and may have a block of parameters in front (openssl writes
  // one). Errors: InvalidArgument.
  static Result<Authority> adopt(std::string_view ca_pem, std::string_view key_pem,
                                 std::string_view cluster);

  [[nodiscard]] const std::string& cluster() const { return cluster_; }
  [[nodiscard]] const Certificate& certificate() const { return certificate_; }
  [[nodiscard]] Result<std::string> key_pem() const { return key_.private_pem(); }

  // Only the public half of `key` is used. The certificate ends after `lifetime`, but not after the
  // CA. The error says what is wrong, and the caller puts in front what was asked for. It is
  // NotAllowed for an identity of another cluster, and when the CA's certificate is not valid now;
  // InvalidArgument for an unsound identity or lifetime.
  [[nodiscard]] Result<Certificate> issue(const Key& key, const Identity& identity, WallTime now,
                                          Duration lifetime) const;

 private:
  Authority(std::string cluster, Key key, Certificate certificate)
      : cluster_(std::move(cluster)), key_(std::move(key)), certificate_(std::move(certificate)) {}

  std::string cluster_;
  Key key_;
  Certificate certificate_;
};

}  // namespace muster::pki
