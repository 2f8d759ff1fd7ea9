#include "client/commands/call/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "client/commands/call/local_paths.h"
#include "client/commands/call/login_files.h"
#include "common/enrol/socket_place.h"
#include "common/rpc/channel.h"
#include "common/rpc/endpoint_file.h"
#include "common/rpc/status.h"

namespace muster::client {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::Unsupported: return kUsage;
    case ErrorCode::Unsatisfiable: return kUnsatisfiable;
    case ErrorCode::NotFound: return kNotFound;
    case ErrorCode::NotAllowed: return kNotAllowed;
    case ErrorCode::Conflict: return kConflict;
    case ErrorCode::Unreachable: return kUnreachable;
    case ErrorCode::TimedOut: return kTimedOut;
    case ErrorCode::ResourceExhausted:
    case ErrorCode::DataLoss:
    case ErrorCode::Io:
    case ErrorCode::Internal: return kInternal;
  }
  return kInternal;
}

int exit_code(v1::JobPhase phase) {
  switch (static_cast<int>(phase)) {
    case v1::JOB_PHASE_SUCCEEDED: return kOk;
    case v1::JOB_PHASE_FAILED: return kJobFailed;
    case v1::JOB_PHASE_CANCELLED: return kCancelled;
    default: return kInternal;
  }
}

void Session::prepare(grpc::ClientContext& context,
                      std::optional<std::chrono::milliseconds> deadline) {
  if (deadline) context.set_deadline(std::chrono::system_clock::now() + *deadline);
}

namespace {

// gRPC reports an error in layers ("failed to connect to all addresses; last error: UNKNOWN:
// unix:/x: Permission denied"). The innermost layer is the cause.
std::string innermost(const std::string& message) {
  constexpr std::string_view kMark = "last error: ";
  if (message.find(kMark) == std::string::npos) return message;
  const std::size_t at = message.rfind(": ");
  return at == std::string::npos ? message : message.substr(at + 2);
}

bool is_address(const std::string& controller) {
  return controller.starts_with("unix:") ||
         (!controller.empty() && controller.find('/') == std::string::npos &&
          controller.find(':') != std::string::npos);
}

// The endpoint file that is meant where --controller is not given: the private cluster's, which is
// there while that cluster is up; else that of a login.
std::filesystem::path default_endpoint(const std::optional<LoginFiles>& login) {
  std::filesystem::path local = local_endpoint(default_local_dir());
  std::error_code ignored;
  if (!login || std::filesystem::exists(local, ignored)) return local;
  return login->endpoint();
}

Result<rpc::Endpoint> endpoint_of_file(const std::string& path, const std::string& credentials) {
  auto loaded = rpc::load_endpoint(path, credentials);
  if (loaded) return loaded;
  if (loaded.error().code == ErrorCode::NotFound) {
    std::error_code ignored;
    const bool may_log_in = std::filesystem::exists(enrol::kLoginSocket, ignored);
    return fail(ErrorCode::Unreachable,
                fmt::format("finding a controller: there is no endpoint file '{}'; {}start a "
                            "private cluster with 'muster local up', or name one with --controller",
                            path, may_log_in ? "log in to this machine's ('muster login'), " : ""));
  }
  if (::access(path.c_str(), R_OK) != 0 && errno == EACCES) {
    return fail(ErrorCode::NotAllowed,
                fmt::format("finding a controller: the endpoint file '{}' is not yours to "
                            "read; this is another user's private cluster, 'muster local up' "
                            "starts one of your own",
                            path));
  }
  return loaded;
}

}  // namespace

Result<Session> Context::connect() const {
  const auto login = present_login();
  const bool by_login = login && credentials.empty();
  const std::string used = by_login ? login->credentials().string() : credentials;
  const std::string where = controller.empty() ? default_endpoint(login).string() : controller;
  auto found = is_address(where) ? rpc::endpoint_at(where, used) : endpoint_of_file(where, used);
  if (!found) {
    Error error = std::move(found.error());
    if (by_login && error.message.contains(used))
      error.message += "; 'muster login' gets another certificate";
    return fail(std::move(error));
  }
  const rpc::Endpoint endpoint = std::move(*found);
  // The socket's callers may do everything: whoever names a user's file does not want that. The
  // variable may be set for other clusters.
  const char* variable = std::getenv("MUSTER_CREDENTIALS");
  if (!endpoint.credentials && !credentials.empty() &&
      (variable == nullptr || credentials != variable))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("calling the controller at '{}': --credentials is for host:port, and "
                            "this is its unix socket; leave --credentials out, or name the "
                            "controller by host:port",
                            endpoint.address));
  const auto channel = rpc::make_channel(endpoint);
  Session session;
  session.jobs = v1::JobService::NewStub(channel);
  session.nodes = v1::NodeService::NewStub(channel);
  session.certificates = v1::CertificateService::NewStub(channel);
  session.secrets = v1::SecretService::NewStub(channel);
  session.stores = v1::StoreService::NewStub(channel);
  session.where = endpoint.address;
  if (endpoint.credentials) {
    session.certificate_begins = endpoint.credentials->not_before;
    session.certificate_ends = endpoint.credentials->not_after;
  }
  return session;
}

int report(const Context& context, const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "{} {}\n", context.err.paint(render::Tint::Bad, "muster:"),
             render::printable_lines(error.message));
  return exit_code(error.code);
}

Error to_error(const Session& session, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    const std::string cause = innermost(status.error_message());
    if (session.where.starts_with("unix:") && cause == "Permission denied") {
      return {ErrorCode::NotAllowed,
              fmt::format("calling the controller at '{}': the socket is not yours; only the user "
                          "who runs this cluster may use it",
                          session.where)};
    }
    if (rpc::is_no_grpc(status))
      return {ErrorCode::Unreachable,
              fmt::format("calling the controller at '{}': it has TLS, but not gRPC: is this its "
                          "enrolment port? Give the port of its --listen",
                          session.where)};
    if (!session.where.starts_with("unix:")) {
      const char* const ask =
          rpc::ended_in_handshake(status)
              ? ", in the TLS handshake; the certificate may have ended, or be of another CA "
                "('muster cert show FILE'): 'muster login' makes a new one; is this machine's "
                "clock right ('date -u')?"
              : "; is it running there? Can its port be reached?";
      return {ErrorCode::Unreachable,
              fmt::format("calling the controller at '{}': {}{}", session.where, cause, ask)};
    }
    return {ErrorCode::Unreachable,
            fmt::format("calling the controller at '{}': {}; is it running? 'muster local status' "
                        "shows a private one",
                        session.where, cause)};
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return {ErrorCode::Unreachable,
            fmt::format("calling the controller at '{}': no answer in time; it may be overloaded "
                        "or cut off; jobs go on without it",
                        session.where)};
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return {ErrorCode::Unsupported,
            fmt::format("the controller at '{}' does not know this call: it is of another release; "
                        "compare 'muster version'",
                        session.where)};
  }
  return rpc::to_error(status);
}

bool may_pass(const Error& error) {
  return error.code == ErrorCode::Unreachable || error.code == ErrorCode::ResourceExhausted;
}

}  // namespace muster::client
