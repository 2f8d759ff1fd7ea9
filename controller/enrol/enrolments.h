// Enrolments is what the enrolment port asks of the controller: a certificate for a new node that
// has a join token, and a new certificate for a node that is registered. The controller's Doors
// own it; it must outlive the port. Any thread may ask. An answer comes on the shell's strand (or
// on the caller's thread, before the call returns, where it is refused at once), exactly once,
// and after what it means is durable.
//
// A certificate is signed before it is decided whether it may leave: its serial and its key are
// part of the fact. What is refused is thrown away. Of a join the token is looked at first: nothing
// is signed for somebody without a sound one.
//
// Errors are sentences for the person at the node. InvalidArgument: the name or the key is unsound.
// NotAllowed: the token or the key does not allow it. ResourceExhausted: a bound, or too many ask;
// try again later. DataLoss: the controller is paused. Io: it has not got the files of the CA that
// signs yet; the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "controller/access/authorities.h"
#include "controller/shell/shell.h"

namespace muster::controller {

struct JoinAsk {
  std::string token;       // its id
  std::string secret;      // the text in the token, as it is written there; it is kept nowhere
  std::string node;        // the name that the node wants
  std::string public_key;  // SubjectPublicKeyInfo in DER, ECDSA P-256
};
// The asker has proven that it has the private key of `registered`: in the handshake, or by a
// signature. The certificate of that key may have ended.
struct RenewAsk {
  std::string node;
  std::string registered;  // SHA-256 of its SubjectPublicKeyInfo, in hex (Key::public_digest)
  std::string public_key;  // the new one (it may be the same), as in JoinAsk
};
struct EnrolmentAnswer {
  std::string certificate;  // PEM; of a node: for 30 days
  std::string ca;           // PEM; of each CA that counts
  // Of a login: whose it is, and where the controller takes calls over TCP (HOST:PORT).
  std::string user = {};
  std::vector<std::string> addresses = {};
};

class Enrolments {
 public:
  using Done = std::move_only_function<void(Result<EnrolmentAnswer>)>;

  // All must outlive it. Without an authority its error is the answer.
  Enrolments(Shell& shell, const Authorities& authority, const Clock& clock)
      : shell_(shell), authority_(authority), clock_(clock) {}

  // The same token, key and node again: allowed, and no further use of the token is counted.
  void join(JoinAsk ask, Done done);
  void renew(RenewAsk ask, Done done);

 private:
  template <class InputOf>
  void ask(const std::string& node, const std::string& public_key, Done done, InputOf input_of);

  Shell& shell_;
  const Authorities& authority_;
  const Clock& clock_;
};

}  // namespace muster::controller
