#include "controller/access/revocations.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/pki/authority.h"
#include "common/pki/pem.h"
#include "common/rpc/call_end.h"
#include "common/rpc/status.h"
#include "controller/access/subject.h"
#include "controller/core/access/certificates.h"

namespace muster::controller {
namespace {

Error for_caller(const Error& error) { return Error(error).in("calling the controller"); }

// Nothing: a CA that counts has signed it.
template <class Cas>
std::optional<Error> refuse_signer(const std::shared_ptr<const Cas>& trusted,
                                   const pki::Certificate& certificate, const std::string& whose) {
  if (trusted == nullptr || std::ranges::any_of(*trusted, [&](const pki::Certificate& ca) {
        return certificate.is_signed_by(ca);
      }))
    return std::nullopt;
  return Error{ErrorCode::NotAllowed,
               "the certificate of " + whose +
                   " is of a CA that was dropped; a user gets a new one by `muster cert issue`, a "
                   "node joins again with the token that `muster node replace` makes"};
}

}  // namespace

void Revocations::publish(core::Revoked revoked) {
  std::vector<std::pair<End, Error>> ends;
  {
    const MutexLock lock(book_->mutex);
    book_->revoked = std::make_shared<const core::Revoked>(std::move(revoked));
    for (const auto& [number, one] : book_->open) {
      if (auto error = book_->revoked->refuse(one.subject, one.key, one.issued))
        ends.emplace_back(one.end, for_caller(*error));
    }
  }
  for (const auto& [end, error] : ends) end(rpc::to_refusal(error));
}

void Revocations::trust(const std::string& ca_pem) {
  auto trusted = std::make_shared<Cas>();
  if (const auto blocks = pki::pem_blocks(ca_pem)) {
    for (const pki::PemBlock& block : *blocks) {
      if (auto ca = pki::Certificate::from_pem(block.text)) trusted->push_back(std::move(*ca));
    }
  }
  const std::shared_ptr<const Cas> now = std::move(trusted);
  std::vector<std::pair<End, Error>> ends;
  {
    const MutexLock lock(book_->mutex);
    book_->trusted = now;
    for (const auto& [number, one] : book_->open) {
      const auto certificate = pki::Certificate::from_pem(one.certificate);
      if (!certificate) continue;
      if (auto error = refuse_signer(now, *certificate, core::text_of(one.subject)))
        ends.emplace_back(one.end, for_caller(*error));
    }
  }
  for (const auto& [end, error] : ends) end(rpc::to_refusal(error));
}

Result<void> Revocations::check(const pki::Identity& identity,
                                const pki::Certificate& certificate) const {
  const auto subject = subject_of(identity);
  if (!subject) return {};
  std::shared_ptr<const core::Revoked> revoked;
  std::shared_ptr<const Cas> trusted;
  {
    const MutexLock lock(book_->mutex);
    revoked = book_->revoked;
    trusted = book_->trusted;
  }
  if (auto error = refuse_signer(trusted, certificate, pki::text_of(identity)))
    return fail(std::move(*error));
  if (auto error = revoked->refuse(*subject, certificate.public_digest(),
                                   certificate.not_before() + pki::kClockDifference))
    return fail(std::move(*error));
  return {};
}

Revocations::Stay Revocations::enter(grpc::ServerContextBase& context) {
  const rpc::Caller caller = rpc::caller_of(context);
  return caller.identity ? enter(caller, rpc::ender_of(context)) : Stay();
}

Revocations::Stay Revocations::enter(const rpc::Caller& caller, End end) {
  const auto subject = caller.identity ? subject_of(*caller.identity) : std::nullopt;
  if (!subject) return {};
  const WallTime issued = caller.not_before + pki::kClockDifference;
  std::optional<Error> error;
  std::uint64_t number = 0;
  {
    const MutexLock lock(book_->mutex);
    number = ++book_->last;
    book_->open.emplace(number, Open{.subject = *subject,
                                     .key = caller.key,
                                     .issued = issued,
                                     .certificate = caller.certificate,
                                     .end = end});
    error = book_->revoked->refuse(*subject, caller.key, issued);
    if (!error && book_->trusted != nullptr) {
      if (const auto certificate = pki::Certificate::from_pem(caller.certificate))
        error = refuse_signer(book_->trusted, *certificate, core::text_of(*subject));
    }
  }
  Stay stay(book_, number);
  if (error) end(rpc::to_refusal(for_caller(*error)));
  return stay;
}

void Revocations::ask_again() {
  std::vector<std::pair<End, May>> open;
  {
    const MutexLock lock(book_->mutex);
    for (const auto& [number, one] : book_->open) {
      if (one.may) open.emplace_back(one.end, one.may);
    }
  }
  for (const auto& [end, may] : open) {
    if (const auto allowed = may(); !allowed) end(rpc::to_status(allowed.error()));
  }
}

void Revocations::Stay::keep_while(May may) {
  if (book_ == nullptr) return;
  End end;
  {
    const MutexLock lock(book_->mutex);
    const auto found = book_->open.find(number_);
    if (found == book_->open.end()) return;
    found->second.may = may;
    end = found->second.end;
  }
  if (const auto allowed = may(); !allowed) end(rpc::to_status(allowed.error()));
}

void Revocations::Stay::leave() {
  if (book_ == nullptr) return;
  Open gone;  // destroyed after the lock is released
  {
    const MutexLock lock(book_->mutex);
    const auto found = book_->open.find(number_);
    if (found != book_->open.end()) {
      gone = std::move(found->second);
      book_->open.erase(found);
    }
  }
}

}  // namespace muster::controller
