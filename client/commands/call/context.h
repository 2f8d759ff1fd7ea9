// The Context is what every verb gets: global options, the connection to the controller, and the
// output styles. main() owns it. One thread, unless a verb's file states another rule.
//
// A verb returns its exit code: 0 success, 1 the job failed, 2 cannot be placed, 3 cancelled, 4
// timed out waiting, 10 not found, 11 not allowed, 12 conflict or ambiguous, 13 controller
// unreachable, 64 usage or invalid spec, 70 internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "client/render/style.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "muster/v1/certificate_service.grpc.pb.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "muster/v1/node_service.grpc.pb.h"
#include "muster/v1/secret_service.grpc.pb.h"
#include "muster/v1/store_service.grpc.pb.h"

namespace muster::client {

enum Exit : int {
  kOk = 0,
  kJobFailed = 1,
  kUnsatisfiable = 2,
  kCancelled = 3,
  kTimedOut = 4,
  kNotFound = 10,
  kNotAllowed = 11,
  kConflict = 12,
  kUnreachable = 13,
  kUsage = 64,
  kInternal = 70
};

int exit_code(ErrorCode code);
// The exit code of a finished job.
int exit_code(v1::JobPhase phase);

// The stubs over one channel.
struct Session {
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::CertificateService::Stub> certificates;
  std::unique_ptr<v1::SecretService::Stub> secrets;
  std::unique_ptr<v1::StoreService::Stub> stores;
  std::string where;  // for messages: "unix:/run/x.sock"
  // Of the client's own certificate; not set: it needs none.
  std::optional<WallTime> certificate_begins, certificate_ends;

  template <class Stub>
  [[nodiscard]] Stub& stub() const {
    if constexpr (std::is_same_v<Stub, v1::JobService::Stub>)
      return *jobs;
    else if constexpr (std::is_same_v<Stub, v1::NodeService::Stub>)
      return *nodes;
    else if constexpr (std::is_same_v<Stub, v1::SecretService::Stub>)
      return *secrets;
    else if constexpr (std::is_same_v<Stub, v1::StoreService::Stub>)
      return *stores;
    else
      return *certificates;
  }
  // Sets a deadline when one is given.
  static void prepare(grpc::ClientContext& context,
                      std::optional<std::chrono::milliseconds> deadline);
};

struct Context {
  // --controller: address or endpoint file; empty = the private cluster's endpoint file, where
  // there is one, else that of a login (login_files.h)
  std::string controller;
  std::string credentials;  // --credentials: a file, for host:port; empty = those of a login
  render::Style out;        // stdout
  render::Style err;        // stderr
  // The words behind "--": another program's command line, which the parser of muster's own options
  // never sees. The verbs that accept one add their names to command_verbs.
  std::optional<std::vector<std::string>> command;
  std::vector<std::string> command_verbs;

  // Errors: Unreachable (no endpoint file, or no controller there), NotAllowed (no
  // credentials for host:port, or a file that is not private).
  Result<Session> connect() const;
};

// Prints "muster: message" to stderr, with control characters except line ends and tabs made
// harmless. Returns the exit code.
int report(const Context& context, const Error& error);
// Converts the status of a failed call. For an unreachable controller, the message has its address
// and how to start one.
Error to_error(const Session& session, const grpc::Status& status);
// True if the controller is away or overloaded, so that a later call may succeed.
bool may_pass(const Error& error);

}  // namespace muster::client
