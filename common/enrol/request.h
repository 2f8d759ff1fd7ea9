// Requests of the enrolment port: how a client makes one, and how the controller reads and checks
// one. Pure; any thread. What is read comes from anybody who reaches the port.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/enrol/proof.h"
#include "common/enrol/token.h"
#include "common/pki/key.h"

namespace muster::enrol {

struct Request {
  Purpose purpose = Purpose::Join;
  std::string node;
  std::string public_key;  // DER SubjectPublicKeyInfo
  pki::Key key;            // of `public_key`; a public key alone
  std::string signature;
  // Of a join, and of a login, whose `node` is empty.
  std::string token_id, secret;
  // Of a renewal.
  std::optional<pki::Key> registered_key;  // a public key alone
  std::string registered_signature;
  // Of a login.
  Duration lifetime{};
};

// The bytes of an EnrolRequest. Every field has its bounds, and every key is one of P-256. Errors:
// InvalidArgument; the sentence goes to the client.
Result<Request> parse_request(std::string_view bytes);
// NotAllowed unless each key that the request names has signed it for this connection.
Result<void> check_proof(const Request& request, std::string_view binding);

// The bytes of a request that passes both. `key` and `registered_key` are pairs.
Result<std::string> join_request(const Token& token, const std::string& node, const pki::Key& key,
                                 std::string_view binding);
Result<std::string> renew_request(const std::string& node, const pki::Key& registered_key,
                                  const pki::Key& key, std::string_view binding);
// `lifetime` as in login.h.
Result<std::string> login_request(const Token& token, const pki::Key& key, Duration lifetime,
                                  std::string_view binding);

}  // namespace muster::enrol
