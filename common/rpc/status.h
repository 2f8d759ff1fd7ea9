// Converts an Error to a grpc::Status and back, by one table. Pure.
//
// The text travels in the message. It is unchanged up to the length that gRPC accepts; a longer
// text is cut at the end.
#pragma once

#include <grpcpp/support/status.h>

#include "common/base/error.h"

namespace muster::rpc {

grpc::Status to_status(const Error& error);
// `status` must not be OK.
Error to_error(const grpc::Status& status);
// Whether a connection failed because the other end has TLS, but not gRPC: mostly it is the
// controller's enrolment port. gRPC's own words name only a property of TLS.
[[nodiscard]] bool is_no_grpc(const grpc::Status& status);
// Whether a new connection over TLS ended before the other end had accepted this one. The side that
// does not accept a certificate only closes the connection, so gRPC's words do not say why. Of a
// connection without TLS, the answer has no meaning.
[[nodiscard]] bool ended_in_handshake(const grpc::Status& status);

}  // namespace muster::rpc
