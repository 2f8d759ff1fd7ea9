// Logins: how long a user's certificate may count, and the exchange at the enrolment socket, which
// has neither a token nor a signature: the kernel says who calls. A certificate for the key of
// somebody else is of no use to the caller. Pure; any thread. What is read comes from anybody on
// the machine.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/key.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::enrol {

inline constexpr Duration kLoginLifetimeLeast = std::chrono::hours(1),
                          kLoginLifetimeMost = std::chrono::hours(24 * 31),
                          kLoginLifetimeDefault = std::chrono::hours(24);

// The time that is asked for, or the default. InvalidArgument outside of the bounds.
Result<Duration> lifetime_of(const v1::EnrolRequest::Login& login);

struct SocketLogin {
  std::string public_key;  // DER SubjectPublicKeyInfo, of P-256
  Duration lifetime{};
};
// The bytes of an EnrolRequest. Errors: InvalidArgument; the sentence goes to the client.
Result<SocketLogin> parse_socket_login(std::string_view bytes);
// The bytes of a request that passes that.
Result<std::string> socket_login_request(const pki::Key& key, Duration lifetime);

}  // namespace muster::enrol
