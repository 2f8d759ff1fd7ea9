#include "agent/enrol/renewal.h"

#include <pthread.h>

#include <algorithm>
#include <random>
#include <utility>

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
// After a renewal: how long no change of the CA makes it renew again. Each renewal takes one of the
// few keys that the controller gives to a node.
constexpr Duration kNoOtherFor = std::chrono::hours(1);
constexpr Duration kNoteAgain = std::chrono::hours(24);
constexpr std::size_t kCaBytesMost = 32 << 10;  // they must fit into the file

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
        while (!cancel_.wait_or_nudge(step())) {
        }
      }) {}

void Renewal::trust(std::string ca_pem, std::string signing) {
  if (ca_pem.size() > kCaBytesMost) return;
  {
    const MutexLock lock(mutex_);
    wanted_ = {.ca_pem = std::move(ca_pem), .signing = std::move(signing), .unreached = false};
  }
  cancel_.nudge();
}

void Renewal::unreached() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(wanted_.unreached, true)) return;
  }
  cancel_.nudge();
}

void Renewal::stop() {
  if (!thread_.joinable()) return;
  cancel_.request();
  thread_.join();
}

Duration Renewal::step() {
  Wanted wanted;
  {
    const MutexLock lock(mutex_);
    wanted = wanted_;
  }
  if (options_.enrol.empty() && wanted.ca_pem.empty()) return kReadAgain;
  auto own = pki::read_credentials(options_.credentials);
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
  own = with_wanted_cas(std::move(*own), wanted);
  if (!own) {
    note(own.error(), "; trying again");
    return backoff_.next();
  }
  const std::string why = why_now(*own, wanted);
  if (options_.enrol.empty()) {
    if (!why.empty() && noted_signer_.first(wanted.signing))
      log::warn(why +
                "; without --enrol the agent does not renew it: make a new one by `muster "
                "cert issue --node " +
                options_.node + "`, and put it in the place of '" + options_.credentials.string() +
                "' before `muster cert rotate finish`");
    return kReadAgain;
  }
  const WallTime now = clock_.now().wall, due = renewal_time(*own, jitter_);
  if (why.empty() && now < due) return std::min(kReadAgain, due - now);
  if (!why.empty() && noted_signer_.first(wanted.signing)) log::info(why + "; renewing it");
  const auto made = renew(*own);
  if (!made) {
    if (!cancel_.requested())
      note(made.error(), "; trying again (the certificate " +
                             std::string(now < own->not_after ? "ends at " : "ended at ") +
                             utc_text(own->not_after) + ")");
    return backoff_.next();
  }
  backoff_.reset();
  noted_.clear();
  {
    const MutexLock lock(mutex_);
    wanted_.unreached = false;
  }
  last_ = LastRenewal{.at = clock_.now().boot, .signing = wanted.signing};
  // The answer may leave out a CA that does not sign yet. What fails here, the next step repeats.
  (void)with_wanted_cas(*made, wanted);
  log::info("renewed the certificate", {{"node", options_.node},
                                        {"until", utc_text(made->not_after)},
                                        {"credentials", options_.credentials.string()}});
  return kAfterRenewal;
}

std::string Renewal::why_now(const pki::Credentials& own, const Wanted& wanted) const {
  const auto signer = own.signer();
  if (!signer) return {};
  const bool is_fresh = last_ && clock_.now().boot - last_->at < kNoOtherFor;
  // Another CA signs than at the last renewal: that is no repetition.
  const bool is_repeated = is_fresh && wanted.signing == last_->signing;
  if (!wanted.signing.empty() && *signer != wanted.signing && !is_repeated)
    return "the certificate of node '" + options_.node +
           "' is of a CA that signs no more: the cluster's CA is being changed";
  const auto digests = own.ca_digests();
  if (wanted.unreached && !is_fresh && digests && digests->size() > 1)
    return "the controller does not answer, perhaps not to the certificate of node '" +
           options_.node + "', and the cluster's CA was being changed";
  return {};
}

Result<pki::Credentials> Renewal::with_wanted_cas(pki::Credentials own, const Wanted& wanted) {
  if (wanted.ca_pem.empty()) return own;
  auto changed =
      pki::parse_credentials(own.key_pem + "\n" + own.certificate_pem + "\n" + wanted.ca_pem);
  if (!changed || changed->ca_pem == own.ca_pem) return own;
  if (auto kept = pki::replace_credentials(options_.credentials, *changed); !kept)
    return fail(std::move(kept.error()));
  log::info("the CAs of the cluster have changed",
            {{"node", options_.node},
             {"signing", wanted.signing},
             {"credentials", options_.credentials.string()}});
  return std::move(*changed);
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
  if (!issued) {
    // A key that is refused for good is of no use: it may be revoked.
    if (issued.error().code == ErrorCode::NotAllowed) remove_pending_key(options_.pending_key);
    return fail(Error(issued.error()));
  }
  return received(*issued, *key, options_.node, *digests);
}

void Renewal::note(const Error& error, std::string_view what_next) {
  const BootTime now = clock_.now().boot;
  const auto [noted, first] = noted_.try_emplace(error.code, now);
  if (!first && now - noted->second < kNoteAgain) return;
  noted->second = now;
  log::warn(error.message + std::string(what_next));
}

}  // namespace muster::agent
