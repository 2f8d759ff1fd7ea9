// LoginSocket is the controller's enrolment socket: a unix socket of mode 0666, where every user of
// this machine gets a certificate of the own name without a token. The kernel says who calls
// (SO_PEERCRED), and the host which name that is (peer_user.h). A connection has one request and
// one answer, as at the enrolment port, without TLS (common/enrol/login.h).
//
// The controller's Doors own it. Its connections run on a thread of its own, and names are looked
// up on another one, one after the other. start() and stop() are the main thread's. The hook is
// called on the second one, and may answer on any thread. An answer after stop() is dropped.
//
// Everybody on the machine may connect, so everything has a bound: the connections, those of one
// user, their time and their bytes. One user may have many uids: root in a container, or whoever
// has a range of /etc/subuid. Such ranges begin above 65535, so uids above that also share the
// bound of their block of 65536, of which one uid has a quarter. A connection beyond a bound is
// told so, and closed at once. What goes wrong is counted and logged by its cause (trouble.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/name_service/getent.h"
#include "controller/enrol/logins.h"
#include "controller/enrol/peer_user.h"

namespace muster::controller {

struct LoginSocketOptions {
  std::string path;    // absolute; its directory is made with mode 0755 where it is missing
  ControllerUser own;  // who runs the controller
  std::size_t connections = 64;
  std::size_t of_a_user = 8;
  std::size_t of_a_block = 16;  // a range lies in two blocks at most: half of the connections
  Duration most = std::chrono::seconds(5);  // for everything on one connection
  name_service::Tables tables = {};
};

class LoginSocket {
 public:
  using Login = std::function<void(SocketLoginAsk, Enrolments::Done)>;

  // Errors: those of enrol::check_socket_place and of io::make_dirs; Io when another controller
  // serves the socket.
  static Result<std::unique_ptr<LoginSocket>> start(LoginSocketOptions options, Login login,
                                                    const Clock& clock);
  ~LoginSocket();
  LoginSocket(const LoginSocket&) = delete;
  LoginSocket& operator=(const LoginSocket&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Closes every connection, removes the socket and ends the threads. Idempotent.
  void stop();

 private:
  struct Impl;
  LoginSocket(std::shared_ptr<Impl> impl, std::string path)
      : impl_(std::move(impl)), path_(std::move(path)) {}

  std::shared_ptr<Impl> impl_;
  std::string path_;
};

}  // namespace muster::controller
