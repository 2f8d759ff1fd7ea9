// Doors are where the controller takes connections, and the file that says where they are:
//
//   the server          calls of clients, agents and log senders (--listen; server.h)
//   the enrolment port  a node or a user without a certificate, over TCP (--enrol; enrol/port.h)
//   the login socket    a user of this machine (--login-socket; enrol/login_socket.h)
//   the endpoint file   common/rpc/endpoint_file.h
//
// run() in main.cc owns it, and calls everything but show() on the main thread. It owns the doors,
// what the two for enrolment ask (Enrolments, Logins), and the controller's own certificate as
// connections over TCP see it. Each door has threads of its own, and what comes in goes from there
// to the shell's strand; here is no state that two of them share.
#pragma once

#include <grpcpp/grpcpp.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/rpc/tls_port.h"
#include "controller/access/access.h"
#include "controller/access/authorities.h"
#include "controller/access/refusals.h"
#include "controller/access/revocations.h"
#include "controller/config.h"
#include "controller/enrol/enrolments.h"
#include "controller/enrol/login_socket.h"
#include "controller/enrol/logins.h"
#include "controller/enrol/port.h"
#include "controller/server.h"
#include "controller/shell/shell.h"

namespace muster::controller {

// All of them must outlive the doors.
struct DoorNeeds {
  const Config& config;
  Shell& shell;
  const Authorities& authorities;
  const Clock& clock;
  const Access& access;
  Refusals& refusals;
  Revocations& revocations;
};

class Doors {
 public:
  // Opens nothing yet. Without a port over TCP nothing needs the CA, and the controller starts
  // without one; that no certificates can be issued is logged. Errors: that of `authorities`.
  static Result<std::unique_ptr<Doors>> make(const DoorNeeds& needs);

  // Whether calls come over TCP.
  [[nodiscard]] bool has_tcp() const { return tls_ != nullptr; }

  // Opens all doors, writes the endpoint file and logs where they are. Called once. `services` must
  // live until shut_down() has returned. After an error some doors may be open: shut them as ever.
  // Errors: those of Server::start, EnrolPort::start, LoginSocket::start and write_endpoint_file;
  // that of `authorities`, if there is an enrolment port.
  Result<void> open(const std::vector<grpc::Service*>& services, const ClusterId& cluster);

  // From now on connections see these certificates. For the work loop: it blocks until open() has
  // opened what shows one.
  void show(const AuthoritiesNow& now);

  // Nobody enrols or logs in any more: ends the connections of both doors, and their threads.
  void stop_enrolment();
  // Ends all calls, and blocks until they have ended.
  void shut_down();

 private:
  Doors(const DoorNeeds& needs, std::shared_ptr<rpc::LiveTls> tls);
  Result<void> open_server(const std::vector<grpc::Service*>& services);
  Result<void> open_enrol_port();
  Result<void> open_login_socket();
  [[nodiscard]] Result<void> write_endpoint(const ClusterId& cluster) const;
  void log_addresses() const;

  const DoorNeeds needs_;
  // The certificate is made anew at each start, and lives as long as the CA: who can read the one's
  // key can read the other's. Null: no port is over TCP.
  const std::shared_ptr<rpc::LiveTls> tls_;
  Enrolments enrolments_;
  std::unique_ptr<Server> server_;
  std::optional<Logins> logins_;  // knows the server's addresses
  std::unique_ptr<EnrolPort> enrol_port_;
  std::unique_ptr<LoginSocket> login_socket_;
  std::promise<void> opened_;
  const std::shared_future<void> are_open_{opened_.get_future()};
};

}  // namespace muster::controller
