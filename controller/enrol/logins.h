// Logins is what the enrolment port and the enrolment socket ask of the controller for a user: a
// certificate, by a personal token, or for the one whom the kernel names. The controller's Doors
// own it; it must outlive both. Any thread may ask. Answers come as those of Enrolments: once,
// after what they mean is durable.
//
// A certificate is signed before it is decided whether it may leave. Of a token the ledger says
// whose it is, so it is read first; nothing is signed for somebody without a sound one.
//
// Errors are sentences for the user. InvalidArgument, NotAllowed, ResourceExhausted, DataLoss and
// Io as in enrolments.h; Unsupported: the controller takes no calls over TCP.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "controller/access/authorities.h"
#include "controller/core/model/input.h"
#include "controller/enrol/enrolments.h"
#include "controller/shell/shell.h"

namespace muster::controller {

struct LoginAsk {
  std::string token;       // its id
  std::string secret;      // as in JoinAsk
  std::string public_key;  // SubjectPublicKeyInfo in DER, ECDSA P-256; its owner has proven it
  Duration lifetime{};     // within the bounds of common/enrol/login.h
};
struct SocketLoginAsk {
  std::string user;  // of `uid` (peer_user.h)
  std::uint32_t uid = 0;
  std::string public_key;
  Duration lifetime{};
};

class Logins {
 public:
  // All must outlive it. `addresses`: where the server takes calls over TCP; none: nobody logs in.
  Logins(Shell& shell, const Authorities& authority, const Clock& clock,
         std::vector<std::string> addresses)
      : shell_(shell), authority_(authority), clock_(clock), addresses_(std::move(addresses)) {}

  // The same token and key again: allowed, and no further use of the token is counted.
  void login(LoginAsk ask, Enrolments::Done done);
  void login(SocketLoginAsk ask, Enrolments::Done done);

 private:
  using SharedDone = std::shared_ptr<Enrolments::Done>;

  [[nodiscard]] Result<void> check_ready() const;
  // A certificate: what is decided about it, and the answer that may leave then.
  struct Signed {
    core::NewCertificate record;
    EnrolmentAnswer answer;
  };
  [[nodiscard]] Result<Signed> sign(const std::string& user, const std::string& public_key,
                                    Duration lifetime, WallTime now) const;
  void decide(core::Input input, Now now, EnrolmentAnswer answer, SharedDone done);

  Shell& shell_;
  const Authorities& authority_;
  const Clock& clock_;
  const std::vector<std::string> addresses_;
};

}  // namespace muster::controller
