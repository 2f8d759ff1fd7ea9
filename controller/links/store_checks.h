// StoreChecks are the checks of stores that clients wait for and nodes make. The Hub owns it.
// Thread-safe: nodes report on gRPC's threads, and the shell's strand asks.
//
// A check ends with the node's report, with its connection, or when somebody asks for another check
// and this one is older than kLongest: then its report was lost. A client that does not wait any
// more takes its check back (drop).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class StoreChecks {
 public:
  static constexpr std::size_t kMost = 64, kOfUserMost = 4;
  // A node's own bound (agent::kListTime), and its report.
  static constexpr std::chrono::seconds kLongest{55};
  // Called once, with what the node found, or with why it finds nothing (Unreachable).
  using Done = std::move_only_function<void(Result<v1::ReportStoreRequest>)>;

  // The ticket. ResourceExhausted: too many wait, of this user or of all.
  Result<std::string> open(const NodeName& node, const InstanceId& instance,
                           const std::string& user, BootTime now, Done done);
  // NotFound: nobody waits for it, or for that node's. The node's certificate is checked before.
  Result<void> report(v1::ReportStoreRequest report);
  // Done is not called any more.
  void drop(const std::string& ticket);
  void node_gone(const NodeName& node);
  // How many a node makes.
  [[nodiscard]] std::size_t count_of(const NodeName& node);

 private:
  struct Check {
    NodeName node;
    InstanceId instance;
    std::string user;
    BootTime since;
    Done done;
  };
  // Those that this is true for. They are taken out.
  std::vector<Check> take_all(const std::function<bool(const Check&)>& is_it)
      MUSTER_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::string, Check> open_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
