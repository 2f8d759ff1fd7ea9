#include "controller/core/access/revoked.h"

#include <fmt/format.h>

#include "controller/core/access/certificates.h"

namespace muster::core {
namespace {

Error error_of(const Subject& subject, const std::string& why) {
  return {ErrorCode::NotAllowed, fmt::format("the certificate of {} was revoked{}{}",
                                             text_of(subject), why.empty() ? "" : ": ", why)};
}

}  // namespace

Revoked::Revoked(const AccessRecords& records) {
  for (const auto& [subject, all] : records.revoked)
    all_[subject] = {.before = all.before, .why = all.why, .registered_since = {}};
  for (const auto& [subject, keys] : records.certificates) {
    const auto all = all_.find(subject);
    for (const auto& [key, record] : keys) {
      if (record.revoked_at) {
        keys_[{subject, key}] = record.why;
      } else if (all != all_.end()) {
        all->second.registered_since.insert(key);
      }
    }
  }
}

std::optional<Error> Revoked::refuse(const Subject& subject, const std::string& key,
                                     WallTime issued) const {
  if (const auto one = keys_.find({subject, key}); one != keys_.end())
    return error_of(subject, one->second);
  const auto all = all_.find(subject);
  if (all == all_.end() || all->second.registered_since.contains(key) ||
      issued > all->second.before)
    return std::nullopt;
  return error_of(subject, all->second.why);
}

}  // namespace muster::core
