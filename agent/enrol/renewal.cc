#include "agent/enrol/renewal.h"

#include <pthread.h>

#include <algorithm>
#include <random>

#include "agent/enrol/renewal_time.h"
#include "common/enrol/client.h"
#include "common/log/log.h"
#include "common/pki/key.h"

namespace muster::agent {
namespace {

// The wall clock may be set, and a person may replace the file.
constexpr Duration kReadAgain = std::chrono::hours(1);
// After a renewal: a certificate whose life is very short does not make a loop.
constexpr Duration kAfterRenewal = std::chrono::minutes(10);
constexpr Duration kNoteAgain = std::chrono::hours(24);

double draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return std::uniform_real_distribution<double>(0, 1)(random);
}

}  // namespace

Renewal::Renewal(RenewalOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      jitter_(draw(options_.seed)),
      backoff_(options_.seed, options_.retry_min, options_.retry_max),
      thread_([this] {
        pthread_setname_np(pthread_self(), "renewal");
        while (!cancel_.wait(step())) {
        }
      }) {}

void Renewal::stop() {
  if (!thread_.joinable()) return;
  cancel_.request();
  thread_.join();
}

Duration Renewal::step() {
  const auto own = pki::read_credentials(options_.credentials);
  if (!own) {
    note(own.error(), "; the certificate is not renewed until that is mended");
    return std::min(kReadAgain, options_.retry_max);
  }
  const std::string whose = pki::text_of(own->identity);
  if (own->identity.role != pki::Role::Node || own->identity.name != options_.node) {
    note({ErrorCode::NotAllowed, "renewing the certificate of '" + options_.credentials.string() +
                                     "': it is of " + whose + ", and this is node '" +
                                     options_.node + "'"},
         "; it is not renewed");
    return std::min(kReadAgain, options_.retry_max);
  }
  const WallTime now = clock_.now().wall, due = renewal_time(*own, jitter_);
  if (now < due) return std::min(kReadAgain, due - now);
  const auto made = renew(*own);
  if (!made) {
    if (!cancel_.requested())
      note(made.error(), "; trying again (the certificate " +
                             std::string(now < own->not_after ? "ends at " : "ended at ") +
                             utc_text(own->not_after) + ")");
    return backoff_.next();
  }
  backoff_.reset();
  trouble_.over();
  log::info("renewed the certificate", {{"node", options_.node},
                                        {"until", utc_text(made->not_after)},
                                        {"credentials", options_.credentials.string()}});
  return kAfterRenewal;
}

Result<pki::Credentials> Renewal::renew(const pki::Credentials& own) {
  if (!received_ || received_of_ != own.certificate_pem) {
    auto answer = ask(own);
    if (!answer) return fail(std::move(answer.error()));
    received_ = std::move(*answer);
    received_of_ = own.certificate_pem;
  }
  if (auto valid = check_clock(*received_, clock_.now().wall); !valid)
    return fail(std::move(valid.error()).in("renewing the certificate"));
  if (auto kept = pki::replace_credentials(options_.credentials, received_->credentials); !kept)
    return fail(std::move(kept.error()));
  remove_pending_key(options_.pending_key);
  auto made = std::move(received_->credentials);
  received_.reset();
  return made;
}

Result<Received> Renewal::ask(const pki::Credentials& own) {
  auto key = pending_key(options_.pending_key);
  if (!key) return fail(std::move(key.error()));
  const auto present = pki::Key::from_pem(own.key_pem);
  if (!present) return fail(Error(present.error()));
  if (key->public_digest() == present->public_digest()) {
    // The last renewal was cut off between its last two acts.
    remove_pending_key(options_.pending_key);
    key = pending_key(options_.pending_key);
    if (!key) return fail(std::move(key.error()));
  }
  const auto digests = own.ca_digests();
  if (!digests) return fail(Error(digests.error()));
  const auto issued = enrol::renew({.address = options_.enrol, .cancel = cancel_.fd()}, own, *key);
  if (!issued) return fail(Error(issued.error()));
  return received(*issued, *key, options_.node, *digests);
}

void Renewal::note(const Error& error, std::string_view what_next) {
  const BootTime now = clock_.now().boot;
  const bool again = trouble_.reported() && now - noted_ >= kNoteAgain;
  if (!trouble_.first(to_string(error.code)) && !again) return;
  noted_ = now;
  log::warn(error.message + std::string(what_next));
}

}  // namespace muster::agent
