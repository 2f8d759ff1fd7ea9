// Authorities is what the controller has of the CAs at the moment: the one that signs, and those
// whose certificates count, too, while the CA is changed. main() of the controller owns it, and
// whoever changes the CA replaces what is in it (controller/api/authority_changes.h). Thread-safe:
// what it gives out never changes, and lives as long as somebody has it.
//
// It may be there without a CA: then why() says why. A controller without a TCP port needs none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/pki/authority_files.h"
#include "common/pki/credentials.h"
#include "controller/core/model/access_records.h"

namespace muster::controller {

// The CAs of one moment, and the controller's own certificates.
struct AuthoritiesNow {
  pki::AuthoritySet set;
  // PEM of each CA that counts; the one that signs is the first.
  std::string trusted;
  // One for each CA that signs or did; each with `trusted`. The first is the one to show to those
  // who do not say which they know: of the old CA, as long as that counts.
  std::vector<pki::Credentials> own;
};

// The controller's own certificates are made here. Their keys are on no disk.
Result<AuthoritiesNow> authorities_now(pki::AuthoritySet set, WallTime now);

// PEM of the CA that signs, and of the old one: what a node gets with its certificate. It hears of
// the next one over its stream. An agent of an earlier release refuses an answer with a CA that it
// does not know.
[[nodiscard]] std::string trusted_by_answers(const AuthoritiesNow& now);

[[nodiscard]] pki::AuthorityPlan plan_of(const core::AuthorityRecords& records);

class Authorities {
 public:
  explicit Authorities(Result<AuthoritiesNow> first);
  // One CA that is never changed.
  explicit Authorities(Result<pki::Authority> only);
  Authorities(const Authorities&) = delete;
  Authorities& operator=(const Authorities&) = delete;

  void replace(AuthoritiesNow now);

  // Null: there is no CA.
  [[nodiscard]] std::shared_ptr<const AuthoritiesNow> now() const;
  [[nodiscard]] const Error& why() const { return why_; }

  // The CA that signs. It may be another one at the next call.
  [[nodiscard]] explicit operator bool() const { return now() != nullptr; }
  [[nodiscard]] const Error& error() const { return why_; }
  [[nodiscard]] std::shared_ptr<const pki::Authority> operator->() const;
  [[nodiscard]] std::string trusted() const { return now()->trusted; }

 private:
  const Error why_;
  mutable Mutex mutex_;
  std::shared_ptr<const AuthoritiesNow> now_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
