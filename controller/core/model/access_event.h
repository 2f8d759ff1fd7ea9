// The events about tokens and certificates. Plain values; part of EventBody (event.h).
//
// No event has a secret or a private key: of a token's secret its SHA-256, of a key the SHA-256 of
// its public half (SubjectPublicKeyInfo in DER). All digests and serials are hex in lower case.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>

#include "common/base/time.h"

namespace muster::core {

// Whom a certificate is for.
enum class SubjectRole : std::uint8_t { Node, User };
struct Subject {
  SubjectRole role = SubjectRole::Node;
  std::string name;
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

// The `actor` of these events is who asked: a user ("owner", in old journals, is the controller's),
// "token ID" and "node 'NAME'" (who showed the token or the registered key), or "uid N" (whom the
// kernel named at the enrolment socket).
struct TokenCreated {
  std::string token;  // its id
  std::string secret_sha256;
  std::string nodes;  // a name, or a pattern with one '*'
  std::uint32_t uses = 0;
  WallTime ends_at{};
  // A node of this name may join, though the name is known with another key.
  bool may_replace = false;
  std::string actor;
  std::string user = {};  // of a personal token, and `nodes` is empty; empty: a join token
};
struct TokenRevoked {
  std::string token;
  std::string actor;
};
struct CertificateIssued {
  std::string serial;
  Subject subject;
  std::string key;
  WallTime not_before{}, not_after{};
  std::string token;  // that was used for it; empty: none was
  std::string actor;
};
// Either one key of the subject, or all of its certificates that were issued until `before`.
struct CertificateRevoked {
  Subject subject;
  std::string key;     // empty: all of them
  std::string serial;  // with `key`: the certificate that was named
  WallTime before{};   // without `key`
  std::string why;
  std::string actor;
};

// A step of a change of the cluster's CA. `sha256` is of the CA's certificate (DER).
enum class AuthorityStep : std::uint8_t { Published, Signs, Dropped };
struct AuthorityChanged {
  AuthorityStep step{};
  std::string sha256;
  bool imported = false;  // it was brought from outside
  std::string actor;
};

template <class Event>
concept AccessKind =
    std::same_as<Event, TokenCreated> || std::same_as<Event, TokenRevoked> ||
    std::same_as<Event, CertificateIssued> || std::same_as<Event, CertificateRevoked> ||
    std::same_as<Event, AuthorityChanged>;

}  // namespace muster::core
