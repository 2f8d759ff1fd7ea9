#include "controller/access/authorities.h"

#include <utility>

#include "common/pki/authority_dir.h"

namespace muster::controller {
namespace {

std::shared_ptr<const AuthoritiesNow> first_of(Result<AuthoritiesNow> first) {
  return first ? std::make_shared<const AuthoritiesNow>(std::move(*first)) : nullptr;
}

std::shared_ptr<const AuthoritiesNow> only_of(Result<pki::Authority> only) {
  if (!only) return nullptr;
  const std::string pem = only->certificate().pem();
  return std::make_shared<const AuthoritiesNow>(AuthoritiesNow{
      .set = {.signing = std::move(*only), .next = {}, .old = {}}, .trusted = pem, .own = {}});
}

template <class T>
Error why_not(const Result<T>& result) {
  return result ? Error() : result.error();
}

}  // namespace

Result<AuthoritiesNow> authorities_now(pki::AuthoritySet set, WallTime now) {
  AuthoritiesNow made{.set = std::move(set), .trusted = {}, .own = {}};
  made.trusted = made.set.signing.certificate().pem();
  for (const auto& other : {std::cref(made.set.next), std::cref(made.set.old)}) {
    if (other.get()) made.trusted += other.get()->certificate().pem();
  }
  const std::string& cluster = made.set.signing.cluster();
  if (made.set.old) {
    auto own = pki::issue_controller(*made.set.old, cluster, now);
    if (!own) return fail(std::move(own.error()));
    made.own.push_back(std::move(*own));
  }
  auto own = pki::issue_controller(made.set.signing, cluster, now);
  if (!own) return fail(std::move(own.error()));
  made.own.push_back(std::move(*own));
  for (pki::Credentials& one : made.own) one.ca_pem = made.trusted;
  return made;
}

std::string trusted_by_answers(const AuthoritiesNow& now) {
  return now.set.signing.certificate().pem() +
         (now.set.old ? now.set.old->certificate().pem() : std::string());
}

pki::AuthorityPlan plan_of(const core::AuthorityRecords& records) {
  return {.signing = records.signing,
          .next = records.next,
          .old = records.old,
          .dropped = records.dropped};
}

Authorities::Authorities(Result<AuthoritiesNow> first)
    : why_(why_not(first)), now_(first_of(std::move(first))) {}

Authorities::Authorities(Result<pki::Authority> only)
    : why_(why_not(only)), now_(only_of(std::move(only))) {}

void Authorities::replace(AuthoritiesNow now) {
  auto fresh = std::make_shared<const AuthoritiesNow>(std::move(now));
  const MutexLock lock(mutex_);
  now_.swap(fresh);
}

std::shared_ptr<const AuthoritiesNow> Authorities::now() const {
  const MutexLock lock(mutex_);
  return now_;
}

std::shared_ptr<const pki::Authority> Authorities::operator->() const {
  auto present = now();
  const pki::Authority* signing = &present->set.signing;
  return {std::move(present), signing};
}

}  // namespace muster::controller
