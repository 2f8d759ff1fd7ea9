// Renewal keeps the node's certificate young: at two thirds of its life it asks the enrolment port
// for another one, for a new key, and replaces the credentials file. main() of the agent owns it.
// It has a thread of its own, and blocks there.
//
// - It keeps the CAs in the file as the controller names them (trust()). A certificate that another
//   CA has signed than the one that signs now is renewed at once.
// - Within an hour after a renewal, only a change of the CA that signs makes it renew again.
// - Without an enrolment port it renews nothing, and keeps the CAs alone.
// - It reads the credentials file anew whenever it wakes, at least once an hour.
// - Connections read the file when they are made. The open stream goes on with the old certificate.
// - A certificate that has ended is renewed by proof of its key.
// - A try that fails is repeated without end: after a second at first, then every ten minutes. Each
//   cause is in the log once, and once a day as long as it lasts.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "agent/enrol/cancel.h"
#include "agent/enrol/pending_key.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/pki/credentials.h"
#include "common/rpc/backoff.h"

namespace muster::agent {

struct RenewalOptions {
  std::string enrol;                  // HOST:PORT of the enrolment port; empty: none
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

  // The CAs of the cluster (PEM), and the digest of the one that signs. The controller has been
  // authenticated. Any thread.
  void trust(std::string ca_pem, std::string signing);
  // A try to connect brought no answer. It may be that the controller does not take the certificate
  // any more: if the CA was being changed when the node last heard of it, the node asks for another
  // one. (With TLS 1.3 the caller's end does not see why.) Any thread.
  void unreached();

  // Ends the thread, also in the middle of a question. Idempotent.
  void stop();

 private:
  struct Wanted {
    std::string ca_pem, signing;  // empty: nothing was heard yet
    bool unreached = false;
  };
  struct LastRenewal {
    BootTime at;
    std::string signing;  // the CA that signed, as far as the node had heard
  };
  // On the thread. Renews if it is time, and returns how long to wait then.
  Duration step();
  // Why it is time though the certificate is young. Empty: it is not.
  [[nodiscard]] std::string why_now(const pki::Credentials& own, const Wanted& wanted) const;
  // The file gets the CAs that are wanted. Unchanged: they are in it, or the certificate is of none
  // of them.
  Result<pki::Credentials> with_wanted_cas(pki::Credentials own, const Wanted& wanted);
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
  std::optional<LastRenewal> last_;
  OncePerCause noted_signer_;
  mutable Mutex mutex_;
  Wanted wanted_ MUSTER_GUARDED_BY(mutex_);
  std::map<ErrorCode, BootTime> noted_;  // trouble, and when it was last written to the log
  std::thread thread_;                   // it uses all of the above
};

}  // namespace muster::agent
