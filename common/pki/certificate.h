// Certificate owns an X.509 certificate, and has read at once what muster asks of it. TLS verifies
// the peer's at each connection. A const Certificate may be read on any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/identity.h"
#include "common/pki/openssl.h"

namespace muster::pki {

class Certificate {
 public:
  // One certificate, at most 16 KiB. Errors: InvalidArgument.
  static Result<Certificate> from_pem(std::string_view pem);

  [[nodiscard]] const std::string& pem() const { return pem_; }
  // Its first and its last moment. A moment that WallTime cannot say becomes the nearest one.
  [[nodiscard]] WallTime not_before() const { return not_before_; }
  [[nodiscard]] WallTime not_after() const { return not_after_; }
  [[nodiscard]] const std::string& serial() const { return serial_; }  // hex, lower case
  // SHA-256 of the SubjectPublicKeyInfo, in hex, as Key::public_digest().
  [[nodiscard]] const std::string& public_digest() const { return public_digest_; }
  // SHA-256 of the whole certificate (DER), in hex.
  [[nodiscard]] const std::string& digest() const { return digest_; }
  // Empty if there is none. It is for people; only a CA of muster is known by it.
  [[nodiscard]] const std::string& common_name() const { return common_name_; }
  [[nodiscard]] bool is_ca() const { return is_ca_; }

  // InvalidArgument unless it has exactly one URI, and that is sound. URIs of others count, too: so
  // does the port of the controller (common/rpc/tls_port.cc).
  [[nodiscard]] Result<Identity> identity() const;
  // Whether the key of `ca` made the signature. Times and extensions are not checked.
  [[nodiscard]] bool is_signed_by(const Certificate& ca) const;
  // The error of identity(), or that of pki::check_time().
  [[nodiscard]] Result<void> check_time(WallTime now) const;

  // Stays owned by the certificate. libcrypto's functions have no const: callers only read.
  [[nodiscard]] X509* get() const { return certificate_.get(); }

 private:
  explicit Certificate(CertificateOwner certificate) : certificate_(std::move(certificate)) {}

  CertificateOwner certificate_;
  std::string pem_;
  WallTime not_before_;
  WallTime not_after_;
  std::string serial_;
  std::string public_digest_;
  std::string digest_;
  std::string common_name_;
  bool is_ca_ = false;
};

// NotAllowed before the first and after the last moment of `owner`'s certificate. The sentence says
// both times, because the clock may be what is wrong.
Result<void> check_time(const Identity& owner, WallTime not_before, WallTime not_after,
                        WallTime now);
// Why the certificate of `owner` does not count now, without a word about the clock: the same text
// at each call. Empty: it counts.
std::string time_fault(const Identity& owner, WallTime not_before, WallTime not_after,
                       WallTime now);
// A sentence with that of check_time(), up to what the clock says: for those who report each cause
// once. Any other sentence is returned whole.
std::string_view without_clock(std::string_view sentence);

}  // namespace muster::pki
