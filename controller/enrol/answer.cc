#include "controller/enrol/answer.h"

#include "common/base/utf8.h"
#include "common/enrol/frame.h"
#include "common/proto/proto_time.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::controller {
namespace {

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

}  // namespace

std::string issued_message(EnrolmentAnswer answer, WallTime now) {
  v1::EnrolResponse response;
  auto& issued = *response.mutable_issued();
  issued.set_certificate(std::move(answer.certificate));
  issued.set_ca(std::move(answer.ca));
  issued.set_user(std::move(answer.user));
  for (std::string& address : answer.addresses) issued.add_addresses(std::move(address));
  *response.mutable_time() = to_proto(now);
  return response.SerializeAsString();
}

std::string sentence_of(const Error& error) {
  const std::string text = error.message.substr(0, kSentenceBytesMost);
  return text.substr(0, utf8_prefix(text));
}

std::string refused_message(const Error& error, WallTime now) {
  v1::EnrolResponse response;
  response.mutable_refused()->set_is_final(is_final(error.code));
  response.mutable_refused()->set_sentence(sentence_of(error));
  *response.mutable_time() = to_proto(now);
  return response.SerializeAsString();
}

std::string answer_in_frame(const std::string& message, WallTime now) {
  if (message.size() <= enrol::kFrameBytesMost) return enrol::in_frame(message);
  return enrol::in_frame(refused_message(
      {ErrorCode::Internal,
       "answering a request to enrol: the answer has " + std::to_string(message.size()) +
           " bytes, and at most " + std::to_string(enrol::kFrameBytesMost) +
           " can be sent; is the certificate of the CA long? (`muster cert ca`)"},
      now));
}

}  // namespace muster::controller
