#include "common/rpc/status.h"

#include <string_view>

#include "common/base/utf8.h"

namespace muster::rpc {
namespace {

grpc::StatusCode to_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::Unsatisfiable: return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::NotFound: return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::NotAllowed: return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::Conflict: return grpc::StatusCode::ABORTED;
    case ErrorCode::Unreachable: return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::TimedOut: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::ResourceExhausted: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::DataLoss: return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::Unsupported: return grpc::StatusCode::UNIMPLEMENTED;
    case ErrorCode::Io: return grpc::StatusCode::UNKNOWN;
    case ErrorCode::Internal: return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

ErrorCode to_error_code(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT: return ErrorCode::InvalidArgument;
    case grpc::StatusCode::FAILED_PRECONDITION: return ErrorCode::Unsatisfiable;
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::OUT_OF_RANGE: return ErrorCode::NotFound;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED: return ErrorCode::NotAllowed;
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::ALREADY_EXISTS: return ErrorCode::Conflict;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED: return ErrorCode::Unreachable;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return ErrorCode::TimedOut;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return ErrorCode::ResourceExhausted;
    case grpc::StatusCode::DATA_LOSS: return ErrorCode::DataLoss;
    case grpc::StatusCode::UNIMPLEMENTED: return ErrorCode::Unsupported;
    case grpc::StatusCode::UNKNOWN: return ErrorCode::Io;
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::OK:
    case grpc::StatusCode::DO_NOT_USE: return ErrorCode::Internal;
  }
  return ErrorCode::Internal;
}

// A status travels in trailers, and gRPC accepts 8 KiB of them. Each byte that is not plain ASCII
// takes three bytes there. A longer text would arrive as an error of gRPC about it.
std::string bounded(const std::string& message) {
  constexpr std::size_t kMost = 6 << 10;
  std::size_t cost = 0, end = 0;
  for (; end < message.size(); ++end) {
    const char c = message[end];
    cost += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
    if (cost > kMost)
      return message.substr(0, utf8_prefix(std::string_view(message).substr(0, end))) + "...";
  }
  return message;
}

}  // namespace

grpc::Status to_status(const Error& error) { return {to_code(error.code), bounded(error.message)}; }

Error to_error(const grpc::Status& status) {
  return {.code = to_error_code(status.error_code()), .message = status.error_message()};
}

bool is_no_grpc(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         status.error_message().find("missing selected ALPN") != std::string::npos;
}

bool ended_in_handshake(const grpc::Status& status) {
  const std::string& text = status.error_message();
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
      !text.contains("failed to connect to all addresses"))
    return false;
  // In TLS 1.3 the caller takes the handshake for done, and sends its first frame, before the
  // controller has looked at its certificate.
  return text.contains("Ssl handshake failed") || text.ends_with("Socket closed") ||
         text.ends_with("Connection reset by peer") || text.ends_with("Broken pipe");
}

}  // namespace muster::rpc
