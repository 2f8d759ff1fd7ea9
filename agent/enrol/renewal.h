// Renewal keeps the node's certificate young: at two thirds of its life it asks the enrolment port
// for another one, for a new key, and replaces the credentials file. main() of the agent owns it.
// It has a thread of its own, and blocks there.
//
// - It reads the credentials file anew whenever it wakes, at least once an hour.
// - Connections read the file when they are made. The open stream goes on with the old certificate.
// - A certificate that has ended is renewed by proof of its key.
// - A try that fails is repeated without end: after a second at first, then every ten minutes. Each
//   cause is in the log once, and once a day as long as it lasts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "agent/enrol/cancel.h"
#include "agent/enrol/pending_key.h"
#include "common/base/error.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/pki/credentials.h"
#include "common/rpc/backoff.h"

namespace muster::agent {

struct RenewalOptions {
  std::string enrol;                  // HOST:PORT of the enrolment port
  std::filesystem::path credentials;  // the file
  std::filesystem::path pending_key;  // (pending_key.h)
  std::string node;
  Duration retry_min = std::chrono::seconds(1), retry_max = std::chrono::minutes(10);
  std::uint64_t seed = 0;
};

class Renewal {
 public:
  // `clock` must outlive it.
  Renewal(RenewalOptions options, const Clock& clock);
  ~Renewal() { stop(); }
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;

  // Ends the thread, also in the middle of a question. Idempotent.
  void stop();

 private:
  // On the thread. Renews if it is time, and returns how long to wait then.
  Duration step();
  Result<pki::Credentials> renew(const pki::Credentials& own);
  Result<Received> ask(const pki::Credentials& own);
  void note(const Error& error, std::string_view what_next);

  const RenewalOptions options_;
  const Clock& clock_;
  const double jitter_;
  Cancel cancel_;
  rpc::Backoff backoff_;
  std::optional<Received> received_;  // not in the file yet
  std::string received_of_;           // in place of this certificate
  OncePerCause trouble_;
  BootTime noted_{};
  std::thread thread_;  // it uses all of the above
};

}  // namespace muster::agent
