// Error and Result are what a function returns when the user, the network or the disk is the cause.
// Plain values.
//
// Broken invariants of muster's own code are MUSTER_ASSERT (assert.h) instead. Every message has
// one form: "doing what, to which thing: what went wrong; what would help". It is lower case,
// without a full stop, with ids and paths in single quotes.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

// The set is small and belongs to muster. common/rpc maps these codes to grpc::Status and back. The
// client maps them to exit codes (in brackets).
enum class ErrorCode {
  InvalidArgument,    // spec or usage is wrong [64]
  Unsatisfiable,      // the registered nodes can never do it [2]
  NotFound,           // [10]
  NotAllowed,         // [11]
  Conflict,           // taken, ambiguous, or not in this phase [12]
  Unreachable,        // the other end is not there [13]
  TimedOut,           // [4]
  ResourceExhausted,  // a limit was hit; the text names it [70]
  DataLoss,           // something stored is damaged or older than it must be [70]
  Unsupported,        // known, but not in this release [64]
  Io,                 // disk or operating system [70]
  Internal,           // [70]
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;

  // Puts "context: " in front of the message, on its way to the caller.
  [[nodiscard]] Error in(std::string_view context) &&;
  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
struct [[nodiscard]] Result : std::expected<T, Error> {
  using std::expected<T, Error>::expected;
};

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}
inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }

// Returns ErrorCode::Io, or ResourceExhausted for a full disk or quota. The text of errno follows
// the message: "opening '/x': Permission denied".
std::unexpected<Error> fail_errno(std::string_view doing, int error_number);

}  // namespace muster
