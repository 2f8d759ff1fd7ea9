#include "common/base/error.h"

#include <cerrno>
#include <system_error>

namespace muster {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return "invalid";
    case ErrorCode::Unsatisfiable: return "cannot be placed";
    case ErrorCode::NotFound: return "not found";
    case ErrorCode::NotAllowed: return "not allowed";
    case ErrorCode::Conflict: return "conflict";
    case ErrorCode::Unreachable: return "unreachable";
    case ErrorCode::TimedOut: return "timed out";
    case ErrorCode::ResourceExhausted: return "limit reached";
    case ErrorCode::DataLoss: return "data lost";
    case ErrorCode::Unsupported: return "not supported";
    case ErrorCode::Io: return "input or output failed";
    case ErrorCode::Internal: return "internal";
  }
  return "internal";
}

Error Error::in(std::string_view context) && {
  message.insert(0, std::string(context) + ": ");
  return std::move(*this);
}

std::unexpected<Error> fail_errno(std::string_view doing, int error_number) {
  const bool no_room = error_number == ENOSPC || error_number == EDQUOT;
  return fail(no_room ? ErrorCode::ResourceExhausted : ErrorCode::Io,
              std::string(doing) + ": " + std::generic_category().message(error_number));
}

}  // namespace muster
