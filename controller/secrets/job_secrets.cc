#include "controller/secrets/job_secrets.h"

#include <utility>
#include <variant>

#include "common/engine/model/secret.h"
#include "common/log/log.h"

namespace muster::controller {

void JobSecrets::start(const core::Ledger& ledger, WallTime now) {
  std::set<std::string> named;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, secret] : ledger.secrets) name(secret.item);
    for (const auto& [id, job] : ledger.jobs)
      for (const core::AttemptRecord& attempt : job.attempts) pin(id, attempt.secrets);
    for (const auto& [item, times] : named_) named.insert(item);
  }
  vault_.remove_unnamed(named, now);
}

Result<v1::FetchSecretsResponse> JobSecrets::give(const std::vector<core::PinnedSecret>& pinned,
                                                  const v1::JobSpec& spec) const {
  v1::FetchSecretsResponse response;
  std::map<std::string, std::size_t> sizes;
  for (const core::PinnedSecret& one : pinned) {
    auto value = vault_.get(one.item);
    if (!value)
      return fail(ErrorCode::DataLoss, "secret '" + one.name +
                                           "' cannot be read on the controller's disk; set it "
                                           "again, and see the controller's log");
    sizes[one.name] = value->size();
    v1::SecretValue& given = *response.add_secrets();
    given.set_secret(one.name);
    given.set_value(*std::move(value));
  }
  std::size_t bytes = 0;
  for (const auto& [key, secret] : engine::secrets_of(spec))
    if (const auto size = sizes.find(secret); size != sizes.end())
      bytes += key.size() + size->second;
  if (bytes > kJobSecretsMost)
    return fail(ErrorCode::InvalidArgument,
                "its secrets have " + std::to_string(bytes) + " bytes in all variables, at most " +
                    std::to_string(kJobSecretsMost) +
                    " are given to a process; put large ones into a file");
  return response;
}

std::shared_ptr<const Hidden> JobSecrets::hidden_of(const JobId& job) {
  std::set<std::pair<std::string, std::string>> values;
  {
    const MutexLock lock(mutex_);
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return nullptr;
    if (found->second.hidden) return found->second.hidden;
    values = found->second.values;
  }
  auto made = std::make_shared<Hidden>();
  for (const auto& [name, item] : values) {
    if (auto value = vault_.get(item)) {
      made->add(name, *value);
    } else {
      log::warn("a value cannot be taken out of a job's evidence, so it is left out",
                {{"job", job.str()}, {"secret", name}, {"why", value.error().message}});
      made->hide_all();
    }
  }
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  // Another attempt may have been placed meanwhile.
  if (found != jobs_.end() && found->second.values == values) found->second.hidden = made;
  return made;
}

void JobSecrets::hide(v1::Fact& fact) {
  const bool has_words =
      fact.has_exited() || fact.has_auxiliary_exited() || fact.has_start_failed();
  const std::shared_ptr<const Hidden> hidden =
      has_words ? hidden_of(JobId(fact.job_id())) : nullptr;
  if (hidden == nullptr) return;
  // More of them is kept nowhere (core::decide bounds the same).
  constexpr std::size_t kMost = 4 << 10;
  const auto hide = [&](std::string& text) {
    if (text.size() > kMost) text.resize(kMost);
    text = hidden->hide(text);
  };
  if (fact.has_exited()) hide(*fact.mutable_exited()->mutable_evidence());
  if (fact.has_auxiliary_exited()) hide(*fact.mutable_auxiliary_exited()->mutable_evidence());
  // A sentence of muster's own, perhaps with a line of the setup in it: never left out.
  if (fact.has_start_failed() && !hidden->hides_all())
    hide(*fact.mutable_start_failed()->mutable_text());
}

void JobSecrets::released(std::span<const journal::Row> rows) {
  const MutexLock lock(mutex_);
  for (const journal::Row& row : rows) {
    if (const auto* set = std::get_if<core::SecretSet>(&row.event.body)) {
      name(set->item);
      forget(set->replaced);
    } else if (const auto* removed = std::get_if<core::SecretRemoved>(&row.event.body)) {
      forget(removed->item);
    } else if (const auto* placed = std::get_if<core::AttemptPlaced>(&row.event.body)) {
      pin(placed->job, placed->secrets);
    } else if (const auto* archived = std::get_if<core::JobArchived>(&row.event.body)) {
      const auto job = jobs_.extract(archived->job);
      if (job.empty()) continue;
      for (const auto& [secret, item] : job.mapped().values) forget(item);
    }
  }
}

void JobSecrets::pin(const JobId& job, const std::vector<core::PinnedSecret>& pinned) {
  for (const core::PinnedSecret& one : pinned) {
    Job& known = jobs_[job];
    if (!known.values.emplace(one.name, one.item).second) continue;
    known.hidden.reset();
    name(one.item);
  }
}

void JobSecrets::name(const std::string& item) { ++named_[item]; }

void JobSecrets::forget(const std::string& item) {
  const auto found = named_.find(item);
  if (found == named_.end() || --found->second > 0) return;
  named_.erase(found);
  later_.post("secret gone", [this, item] {
    if (auto gone = vault_.remove(item); !gone) log::warn(gone.error().message);
  });
}

}  // namespace muster::controller
