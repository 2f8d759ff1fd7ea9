#include "controller/enrol/login_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "controller/enrol/answer.h"

namespace muster::controller {
namespace {

std::string uid_text(std::uint32_t uid) { return "uid " + std::to_string(uid); }

}  // namespace

LoginConnection::LoginConnection(Shared& shared, Stream stream, std::uint32_t uid)
    : shared_(shared), uid_(uid), stream_(std::move(stream)), timer_(stream_.get_executor()) {}

void LoginConnection::start() {
  timer_.expires_after(
      std::chrono::duration_cast<boost::asio::steady_timer::duration>(shared_.most));
  timer_.async_wait([self = shared_from_this()](const LoginError& error) {
    if (error) return;
    if (!self->answered_) self->shared_.trouble.note(EnrolCause::Late, uid_text(self->uid_));
    self->close();
  });
  boost::asio::async_read(
      stream_, boost::asio::buffer(length_),
      [self = shared_from_this()](const LoginError& error, std::size_t) {
        if (self->closed_) return;
        if (error) {
          self->shared_.trouble.note(EnrolCause::Broken, uid_text(self->uid_));
          return self->close();
        }
        if (const auto length = enrol::length_in(self->length_)) return self->read_request(*length);
        self->refuse(EnrolCause::Request,
                     {ErrorCode::InvalidArgument,
                      "reading a request at the enrolment socket: its length is none that a "
                      "request has"});
      });
}

void LoginConnection::read_request(std::size_t length) {
  bytes_.resize(length);
  boost::asio::async_read(stream_, boost::asio::buffer(bytes_),
                          [self = shared_from_this()](const LoginError& error, std::size_t) {
                            if (self->closed_) return;
                            if (!error) return self->on_request();
                            self->shared_.trouble.note(EnrolCause::Broken, uid_text(self->uid_));
                            self->close();
                          });
}

void LoginConnection::on_request() {
  auto request = enrol::parse_socket_login(bytes_);
  if (!request) return refuse(EnrolCause::Request, request.error());
  shared_.serve(uid_, std::move(*request),
                [post = shared_.post, weak = weak_from_this()](Result<EnrolmentAnswer> result) {
                  post([weak, result = std::move(result)]() mutable {
                    if (const auto self = weak.lock()) self->answer(std::move(result));
                  });
                });
}

void LoginConnection::answer(Result<EnrolmentAnswer> result) {
  if (closed_) return;
  if (!result) return refuse(EnrolCause::Refused, result.error());
  send(issued_message(std::move(*result), shared_.clock.now().wall));
}

void LoginConnection::refuse(EnrolCause cause, const Error& error) {
  shared_.trouble.note(cause, uid_text(uid_) + ": " + sentence_of(error));
  send(refused_message(error, shared_.clock.now().wall));
}

void LoginConnection::send(const std::string& message) {
  answered_ = true;
  bytes_ = answer_in_frame(message, shared_.clock.now().wall);
  boost::asio::async_write(
      stream_, boost::asio::buffer(bytes_),
      [self = shared_from_this()](const LoginError&, std::size_t) { self->close(); });
}

void LoginConnection::close() {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  LoginError ignored;
  stream_.close(ignored);
  shared_.ended(shared_from_this());
}

}  // namespace muster::controller
