// StoreChecks are the checks of stores that clients wait for and nodes make. The Hub owns it.
// Thread-safe: nodes report on gRPC's threads, and ask on the shell's strand.
//
// A node answers within its own bound (agent::kListTime), or its connection ends. A client that
// does not wait any more takes its check back (drop).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class StoreChecks {
 public:
  static constexpr std::size_t kMost = 64;
  // Called once, with what the node found, or with why it finds nothing (Unreachable).
  using Done = std::move_only_function<void(Result<v1::ReportStoreRequest>)>;

  // The ticket. ResourceExhausted: too many wait.
  Result<std::string> open(const NodeName& node, const InstanceId& instance, Done done);
  // NotFound: nobody waits for it, or for that node's. The node's certificate is checked before.
  Result<void> report(v1::ReportStoreRequest report);
  // Done is not called any more.
  void drop(const std::string& ticket);
  void node_gone(const NodeName& node);

 private:
  struct Check {
    NodeName node;
    InstanceId instance;
    Done done;
  };
  Mutex mutex_;
  std::map<std::string, Check> open_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
