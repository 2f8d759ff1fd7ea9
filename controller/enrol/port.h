// EnrolPort is the controller's second door: there a node or a user without a valid certificate
// asks for one. It speaks TLS 1.3 alone, shows the controller's certificate and asks for none. A
// connection has one request and one answer (common/enrol; proto/muster/v1/enrolment.proto).
//
// The controller's Doors own it. It has a thread of its own, on which all of its connections run;
// start() and stop() are the main thread's. The hooks are called on the port's thread, must not
// block, and may answer on any thread. An answer after stop() is dropped.
//
// Whoever reaches the port may send anything, so everything has a bound (limits.h): the
// connections, their time and their bytes. A connection beyond them is closed at once. It needs
// about 100 KiB, so all of them need about 25 MiB. An accept that fails (EMFILE) is tried again
// after a moment, without end.
//
// What goes wrong is counted and logged by its cause (trouble.h). Secrets are in no line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/credentials.h"
#include "controller/enrol/enrolments.h"
#include "controller/enrol/limits.h"
#include "controller/enrol/logins.h"

namespace muster::controller {

struct EnrolHooks {
  std::function<void(JoinAsk, Enrolments::Done)> join;
  std::function<void(RenewAsk, Enrolments::Done)> renew;
  std::function<void(LoginAsk, Enrolments::Done)> login;
};

class EnrolPort {
 public:
  // `address`: HOST:PORT; port 0: a free one; 0.0.0.0 and [::]: both families. `own`: the
  // controller's credentials. Errors: those of name_service::addresses_of; Io when the address is
  // taken; InvalidArgument.
  static Result<std::unique_ptr<EnrolPort>> start(const std::string& address,
                                                  const pki::Credentials& own, EnrolHooks hooks,
                                                  const Clock& clock, EnrolLimits limits = {});
  ~EnrolPort();
  EnrolPort(const EnrolPort&) = delete;
  EnrolPort& operator=(const EnrolPort&) = delete;

  // What later connections are shown: for each CA that counts the controller's certificate. The
  // first is for clients that do not say which. Any thread. Errors as of start().
  Result<void> replace(const std::vector<pki::Credentials>& own);

  [[nodiscard]] const std::string& bound() const { return bound_; }  // HOST:PORT
  // Closes every connection and ends the thread. Idempotent.
  void stop();

 private:
  struct Impl;
  EnrolPort(std::shared_ptr<Impl> impl, std::string bound)
      : impl_(std::move(impl)), bound_(std::move(bound)) {}

  std::shared_ptr<Impl> impl_;
  std::string bound_;
};

}  // namespace muster::controller
