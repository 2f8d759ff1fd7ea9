#include "controller/enrol/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "common/enrol/request.h"
#include "controller/enrol/answer.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

}  // namespace

EnrolTls::EnrolTls(std::unique_ptr<enrol::ServerTls> made)
    : server(std::move(made)), context((::SSL_CTX_up_ref(server->get()), server->get())) {}

EnrolConnection::EnrolConnection(Shared& shared, asio::ip::tcp::socket socket,
                                 const asio::ip::address& from)
    : shared_(shared),
      from_(from),
      tls_(shared.tls),
      stream_(std::move(socket), tls_->context),
      timer_(stream_.get_executor()) {}

void EnrolConnection::start() {
  timer_.expires_after(
      std::chrono::duration_cast<asio::steady_timer::duration>(shared_.limits.most));
  timer_.async_wait([self = shared_from_this()](const SystemError& error) {
    if (error) return;
    if (!self->answered_) self->shared_.trouble.note(EnrolCause::Late, self->from_.to_string());
    self->close();
  });
  stream_.async_handshake(asio::ssl::stream_base::server,
                          [self = shared_from_this()](const SystemError& error) {
                            if (error) return self->fail_with(EnrolCause::Handshake, error);
                            self->read_length();
                          });
}

void EnrolConnection::read_length() {
  asio::async_read(stream_, asio::buffer(length_),
                   [self = shared_from_this()](const SystemError& error, std::size_t) {
                     if (error) return self->fail_with(EnrolCause::Broken, error);
                     if (const auto length = enrol::length_in(self->length_))
                       return self->read_request(*length);
                     self->refuse(EnrolCause::Request,
                                  {ErrorCode::InvalidArgument,
                                   "reading a request to enrol: its length is none that a request "
                                   "has"});
                   });
}

void EnrolConnection::read_request(std::size_t length) {
  bytes_.resize(length);
  asio::async_read(stream_, asio::buffer(bytes_),
                   [self = shared_from_this()](const SystemError& error, std::size_t) {
                     if (error) return self->fail_with(EnrolCause::Broken, error);
                     self->on_request();
                   });
}

void EnrolConnection::on_request() {
  auto request = enrol::parse_request(bytes_);
  if (!request) return refuse(EnrolCause::Request, request.error());
  const auto binding = enrol::binding_of(stream_.native_handle());
  if (!binding) return refuse(EnrolCause::Proof, binding.error());
  if (const auto proven = enrol::check_proof(*request, *binding); !proven)
    return refuse(EnrolCause::Proof, proven.error());
  switch (request->purpose) {
    case enrol::Purpose::Join:
      return shared_.hooks.join({.token = std::move(request->token_id),
                                 .secret = std::move(request->secret),
                                 .node = std::move(request->node),
                                 .public_key = std::move(request->public_key)},
                                answer_later());
    case enrol::Purpose::Renew:
      return shared_.hooks.renew({.node = std::move(request->node),
                                  .registered = request->registered_key->public_digest(),
                                  .public_key = std::move(request->public_key)},
                                 answer_later());
    case enrol::Purpose::Login:
      return shared_.hooks.login({.token = std::move(request->token_id),
                                  .secret = std::move(request->secret),
                                  .public_key = std::move(request->public_key),
                                  .lifetime = request->lifetime},
                                 answer_later());
  }
}

Enrolments::Done EnrolConnection::answer_later() {
  return [post = shared_.post, weak = weak_from_this()](Result<EnrolmentAnswer> result) {
    post([weak, result = std::move(result)]() mutable {
      if (const auto self = weak.lock()) self->answer(std::move(result));
    });
  };
}

void EnrolConnection::answer(Result<EnrolmentAnswer> result) {
  if (closed_) return;
  if (!result) return refuse(EnrolCause::Refused, result.error());
  send(issued_message(std::move(*result), shared_.clock.now().wall));
}

void EnrolConnection::refuse(EnrolCause cause, const Error& error) {
  shared_.trouble.note(cause, from_.to_string() + ": " + sentence_of(error));
  send(refused_message(error, shared_.clock.now().wall));
}

void EnrolConnection::send(const std::string& message) {
  answered_ = true;
  bytes_ = answer_in_frame(message, shared_.clock.now().wall);
  asio::async_write(stream_, asio::buffer(bytes_),
                    [self = shared_from_this()](const SystemError& error, std::size_t) {
                      if (error) return self->close();
                      // It waits for the client's end: a close before that could take the answer
                      // with it.
                      self->stream_.async_shutdown([self](const SystemError&) { self->close(); });
                    });
}

void EnrolConnection::fail_with(EnrolCause cause, const SystemError& error) {
  if (closed_) return;
  shared_.trouble.note(cause, from_.to_string() + ": " + error.message());
  close();
}

void EnrolConnection::close() {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  SystemError ignored;
  stream_.lowest_layer().close(ignored);
  shared_.ended(shared_from_this());
}

}  // namespace muster::controller
