#include "controller/enrol/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "common/base/utf8.h"
#include "common/enrol/request.h"
#include "common/proto/proto_time.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kSentenceBytesMost = 4 << 10;

// Whether the same request would be refused again whenever it comes.
bool is_final(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::Unsatisfiable:
    case ErrorCode::NotFound:
    case ErrorCode::NotAllowed:
    case ErrorCode::Conflict:
    case ErrorCode::Unsupported: return true;
    case ErrorCode::Unreachable:
    case ErrorCode::TimedOut:
    case ErrorCode::ResourceExhausted:
    case ErrorCode::DataLoss:  // the controller is paused
    case ErrorCode::Io:
    case ErrorCode::Internal: return false;
  }
  return false;
}

std::string sentence_of(const Error& error) {
  const std::string text = error.message.substr(0, kSentenceBytesMost);
  return text.substr(0, utf8_prefix(text));
}

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
  if (request->purpose == enrol::Purpose::Join) {
    shared_.hooks.join({.token = std::move(request->token_id),
                        .secret = std::move(request->secret),
                        .node = std::move(request->node),
                        .public_key = std::move(request->public_key)},
                       answer_later());
  } else {
    shared_.hooks.renew({.node = std::move(request->node),
                         .registered = request->registered_key->public_digest(),
                         .public_key = std::move(request->public_key)},
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
  v1::EnrolResponse response;
  response.mutable_issued()->set_certificate(std::move(result->certificate));
  response.mutable_issued()->set_ca(std::move(result->ca));
  *response.mutable_time() = to_proto(shared_.clock.now().wall);
  send(response.SerializeAsString());
}

void EnrolConnection::refuse(EnrolCause cause, const Error& error) {
  const std::string sentence = sentence_of(error);
  shared_.trouble.note(cause, from_.to_string() + ": " + sentence);
  v1::EnrolResponse response;
  response.mutable_refused()->set_is_final(is_final(error.code));
  response.mutable_refused()->set_sentence(sentence);
  *response.mutable_time() = to_proto(shared_.clock.now().wall);
  send(response.SerializeAsString());
}

void EnrolConnection::send(const std::string& message) {
  answered_ = true;
  bytes_ = enrol::in_frame(message);
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
