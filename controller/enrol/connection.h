// EnrolConnection is one connection of the enrolment port: handshake, one request, one answer, end.
// Everything runs on the port's thread, in this order, and within EnrolLimits::most:
//
//   handshake -> length -> request -> proof -> hook ... answer -> end of TLS -> closed
//
// It keeps itself alive while an operation of it is in progress, and the port has it in its set
// until `ended`. An error at any step closes it. What it cannot serve but can read is answered with
// a sentence.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/enrol/frame.h"
#include "common/enrol/tls.h"
#include "controller/enrol/port.h"
#include "controller/enrol/trouble.h"

namespace muster::controller {

// The port's certificates. A connection keeps those that it began with.
struct EnrolTls {
  explicit EnrolTls(std::unique_ptr<enrol::ServerTls> made);
  std::unique_ptr<enrol::ServerTls> server;
  boost::asio::ssl::context context;  // the first of `server`
};

class EnrolConnection : public std::enable_shared_from_this<EnrolConnection> {
 public:
  // What the connections of a port share. It outlives them.
  struct Shared {
    std::shared_ptr<EnrolTls> tls;  // of the next connections
    EnrolHooks hooks;
    const Clock& clock;
    EnrolLimits limits;
    EnrolTrouble& trouble;
    // Runs a task on the port's thread; any thread may call a copy of it at any time. After the end
    // of the port it drops the task.
    std::function<void(std::move_only_function<void()>)> post;
    std::function<void(const std::shared_ptr<EnrolConnection>&)> ended;
  };
  // Throws boost::system::system_error or std::bad_alloc when there is no memory.
  EnrolConnection(Shared& shared, boost::asio::ip::tcp::socket socket,
                  const boost::asio::ip::address& from);

  void start();
  void close();
  [[nodiscard]] const boost::asio::ip::address& from() const { return from_; }

 private:
  using SystemError = boost::system::error_code;
  void read_length();
  void read_request(std::size_t length);
  void on_request();
  Enrolments::Done answer_later();
  void answer(Result<EnrolmentAnswer> result);
  void refuse(EnrolCause cause, const Error& error);
  void send(const std::string& message);
  // Closes, and counts the cause.
  void fail_with(EnrolCause cause, const SystemError& error);

  Shared& shared_;
  boost::asio::ip::address from_;
  const std::shared_ptr<EnrolTls> tls_;
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_;
  boost::asio::steady_timer timer_;
  enrol::LengthBytes length_{};
  std::string bytes_;  // the request, then the answer
  bool answered_ = false;
  bool closed_ = false;
};

}  // namespace muster::controller
