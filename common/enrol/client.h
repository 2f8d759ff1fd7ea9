// The client's half of the enrolment port, and of the enrolment socket: one connection, one
// question, one answer. Stateless functions that block, at most Ask::most and the look-up of a
// host's name. Call them on a thread of their own, never on a loop; the process ignores SIGPIPE.
//
// Errors:
//   NotAllowed        the controller refused for good: asking again changes nothing
//   Unsupported       the other end has not proven to be the cluster's controller; nothing was
//                     asked, so the key may be used again
//   InvalidArgument   the address is none, or the answer cannot be right
//   others            asking again later may help: Unreachable, TimedOut, ResourceExhausted (the
//                     controller refused for now), Internal
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/enrol/token.h"
#include "common/pki/credentials.h"
#include "common/pki/key.h"

namespace muster::enrol {

struct Ask {
  std::string address;                      // HOST:PORT
  Duration most = std::chrono::seconds(5);  // for connecting, asking and the answer together
  int cancel = -1;  // a descriptor: when it can be read, the call ends with TimedOut
};

struct Issued {
  std::string certificate_pem;
  std::string ca_pem;
  WallTime time;  // by the controller's clock
  // Of a login:
  std::string user = {};
  std::vector<std::string> addresses = {};  // HOST:PORT, as the controller listens: maybe 0.0.0.0
};

// The certificate is for `key`, which is a pair. The controller is the one of the token's CA.
Result<Issued> join(const Ask& ask, const Token& token, const std::string& node,
                    const pki::Key& key);
// Proves `own`, whose time may have ended, and `key`. The controller is of a CA of `own`.
Result<Issued> renew(const Ask& ask, const pki::Credentials& own, const pki::Key& key);
// `token`: a personal one. `lifetime`: login.h.
Result<Issued> login(const Ask& ask, const Token& token, const pki::Key& key, Duration lifetime);
// At the enrolment socket of this machine, as the user who calls. NotFound: there is no socket.
// NotAllowed also when others can put another one in its place (socket_place.h).
Result<Issued> login_at_socket(const std::string& path, const pki::Key& key, Duration lifetime);

}  // namespace muster::enrol
