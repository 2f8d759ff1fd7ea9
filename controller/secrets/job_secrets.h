// JobSecrets gives jobs' secrets to agents, takes their values out of what agents report, and keeps
// in the vault what somebody may still need. main() of the controller owns it. Thread-safe.
// released() is called on the shell's strand, and waits for no disk. give() and hide() read the
// vault, on other threads.
//
// An attempt's values were chosen when it was placed, and their items are in its record. So a
// controller that was restarted knows which values a job has had. An item is removed when no secret
// and no attempt of a job in the ledger names it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "controller/core/model/ledger.h"
#include "controller/journal/journal.h"
#include "controller/secrets/hidden.h"
#include "controller/secrets/vault.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

// All variables of a process with secrets as values, with names. What a process can be given is not
// much more (engine::kProcessBytesMost).
inline constexpr std::size_t kJobSecretsMost = 1 << 20;

class JobSecrets {
 public:
  // `later` runs tasks that wait for the disk, one after another. Both must outlive it.
  JobSecrets(const Vault& vault, async::Loop& later) : vault_(vault), later_(later) {}

  // Before the shell has work. Removes old items that nothing names.
  void start(const core::Ledger& ledger, WallTime now);

  // The values of an attempt. InvalidArgument: with the names of the spec's variables they are more
  // than kJobSecretsMost.
  [[nodiscard]] Result<v1::FetchSecretsResponse> give(const std::vector<core::PinnedSecret>& pinned,
                                                      const v1::JobSpec& spec) const;
  // Replaces values in the sentences of the fact.
  void hide(v1::Fact& fact);

  // These rows are durable.
  void released(std::span<const journal::Row> rows);

 private:
  struct Job {
    std::set<std::pair<std::string, std::string>> values;  // name and item, of all its attempts
    std::shared_ptr<const Hidden> hidden;                  // made when it is asked for
  };
  std::shared_ptr<const Hidden> hidden_of(const JobId& job);
  void pin(const JobId& job, const std::vector<core::PinnedSecret>& pinned) MUSTER_REQUIRES(mutex_);
  void name(const std::string& item) MUSTER_REQUIRES(mutex_);
  void forget(const std::string& item) MUSTER_REQUIRES(mutex_);

  const Vault& vault_;
  async::Loop& later_;
  Mutex mutex_;
  std::map<JobId, Job> jobs_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> named_ MUSTER_GUARDED_BY(mutex_);  // how often, by item
};

}  // namespace muster::controller
