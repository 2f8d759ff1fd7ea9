// The ledger's records of tokens and certificates. Plain values; part of the Ledger, and
// changed by the fold alone (controller/core/access/fold.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "controller/core/model/access_event.h"

namespace muster::core {

struct TokenRecord {
  std::string secret_sha256;
  std::string nodes;
  std::uint32_t uses = 0;
  WallTime created_at{}, ends_at{};
  bool may_replace = false;
  std::string actor;
  std::optional<WallTime> revoked_at;
  // The nodes that joined with it, or its user, each with the key. Each counts as one use.
  std::set<std::pair<std::string, std::string>> joined;
  std::string user = {};  // of a personal token; empty: a join token
  // Made before the CA that signs, whose digest it has not. It ends with the CA of before.
  bool of_old_authority = false;

  // From then on nobody can join or log in with it.
  [[nodiscard]] WallTime over_at() const {
    return revoked_at && *revoked_at < ends_at ? *revoked_at : ends_at;
  }
};

// A key of a subject, with the newest certificate that was issued for it.
struct CertificateRecord {
  std::string serial;
  WallTime not_before{}, not_after{};
  WallTime issued_at{};
  WallTime last_end{};           // of all certificates of this key
  std::uint32_t issued_day = 0;  // how many were issued, each within a day of the one before
  std::string token;             // of the newest; empty: none
  std::string actor;
  std::optional<WallTime> revoked_at;
  std::string why;  // it was revoked
};

// Certificates of one subject that were issued until `before` count no more, unless their key was
// registered after the revocation.
struct AllRevoked {
  WallTime before{};
  std::string why;
};

// The CAs, by the digest of their certificate. Empty: there is none. A journal of an older
// version has the first CA only from the next start on.
struct AuthorityRecords {
  std::string signing;
  WallTime signs_since{};  // certificates that were issued before are of `old`
  std::string next;
  std::string old;                 // its certificates still count
  std::set<std::string> imported;  // of these three
  std::set<std::string> dropped;   // never trusted again
};

struct AccessRecords {
  std::map<std::string, TokenRecord> tokens;                                 // by id
  std::map<Subject, std::map<std::string, CertificateRecord>> certificates;  // by key
  std::size_t certificate_count = 0;
  std::map<Subject, AllRevoked> revoked;
  AuthorityRecords authorities;
  WallTime cleared_at{};  // when records that ended long ago were removed the last time
};

}  // namespace muster::core
