// The inputs about tokens and certificates (input.h). Plain values. Whoever makes one has
// hashed the secret, and has signed the certificate already: it leaves only if decide() accepts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/core/model/access_event.h"

namespace muster::core {

// What is known of a certificate before it may leave.
struct NewCertificate {
  std::string serial;
  std::string key;
  WallTime not_before{}, not_after{};
  std::string authority = {};  // the CA that has signed it: the SHA-256 of its certificate
};
struct CreateToken {
  TokenCreated token;
  std::string authority = {};  // whose digest its text has
};
struct RevokeToken {
  std::string token;
  std::string actor;
};
struct JoinNode {
  std::string token;
  std::string secret_sha256;
  std::string node;
  NewCertificate certificate;
};
struct RenewNode {
  std::string node;
  std::string registered;  // the key that the node has proven to have
  NewCertificate certificate;
};
struct LoginWithToken {
  std::string token;
  std::string secret_sha256;
  std::string user;  // of the certificate: the one of the token
  NewCertificate certificate;
};
// At the enrolment socket: the kernel has named the caller's uid, and the host its name.
struct LoginByUid {
  std::string user;
  std::uint32_t uid = 0;
  NewCertificate certificate;
};
struct IssueCertificate {
  Subject subject;
  NewCertificate certificate;
  std::string actor;
};
struct RevokeCertificate {
  std::optional<Subject> subject;  // all of its certificates
  std::string serial;              // without `subject`: the key of this certificate
  std::string why;
  std::string actor;
};

struct ChangeAuthority {
  AuthorityStep step{};
  std::string sha256;   // of the CA that is published, signs from now on, or is dropped
  std::string signing;  // of the one that signs now
  bool imported = false;
  bool at_once = false;  // published, and it signs, and the other one is dropped
  WallTime made_at{};    // of the first one: when it was made
  std::string actor;
};

}  // namespace muster::core
