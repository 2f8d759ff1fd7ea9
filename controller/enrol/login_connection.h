// LoginConnection is one connection of the enrolment socket: one request, one answer, end. Its
// steps run on the socket's thread, in this order, and within the socket's time:
//
//   length -> request -> name of the uid -> hook ... answer -> closed
//
// It keeps itself alive while an operation of it is in progress, and the socket has it in its set
// until `ended`. An error at any step closes it. What it cannot serve but can read is answered with
// a sentence.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/time.h"
#include "common/enrol/frame.h"
#include "common/enrol/login.h"
#include "controller/enrol/enrolments.h"
#include "controller/enrol/trouble.h"

namespace muster::controller {

class LoginConnection : public std::enable_shared_from_this<LoginConnection> {
 public:
  using Stream = boost::asio::local::stream_protocol::socket;
  // What the connections of a socket share. It outlives them.
  struct Shared {
    const Clock& clock;
    Duration most;
    EnrolTrouble& trouble;
    // Looks up the name of a uid, and asks for its certificate; elsewhere, so it does not block.
    std::function<void(std::uint32_t uid, enrol::SocketLogin, Enrolments::Done)> serve;
    // Runs a task on the socket's thread; any thread may call a copy of it at any time. After the
    // end of the socket it drops the task.
    std::function<void(std::move_only_function<void()>)> post;
    std::function<void(const std::shared_ptr<LoginConnection>&)> ended;
  };
  LoginConnection(Shared& shared, Stream stream, std::uint32_t uid);

  void start();
  void close();
  [[nodiscard]] std::uint32_t uid() const { return uid_; }

 private:
  using LoginError = boost::system::error_code;
  void read_request(std::size_t length);
  void on_request();
  void answer(Result<EnrolmentAnswer> result);
  void refuse(EnrolCause cause, const Error& error);
  void send(const std::string& message);

  Shared& shared_;
  const std::uint32_t uid_;
  Stream stream_;
  boost::asio::steady_timer timer_;
  enrol::LengthBytes length_{};
  std::string bytes_;  // the request, then the answer
  bool answered_ = false;
  bool closed_ = false;
};

}  // namespace muster::controller
