// What a launch depends on besides the job's spec: the placement, and where earlier attempts and
// jobs have saved. Plain values.
//
// The controller's core makes them, the journal stores them, and the engines plan from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace muster::engine {

// One node's part of an attempt, as the placement chose it.
struct PlacedNode {
  NodeName node;
  BootId boot_id;
  InstanceId instance;
  std::string address;  // of the training traffic
  // Logical numbers: DEVICE_ID, ASCEND_RT_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES count them.
  std::vector<std::uint32_t> devices;
  RankNo first_rank;
  std::uint32_t rank_count = 0;
  // What the node reported about itself and these devices when it was placed. Empty: not known.
  std::string device_type;   // for resources.type auto
  std::string interface;     // the network interface that has `address`
  std::string device_model;  // "910B3": decides which chip's rules a rank table follows
  // Parallel to `devices`; empty: the same numbers. device_id of a rank table.
  std::vector<std::uint32_t> physical_ids;
  std::vector<std::string> device_ips;  // of the devices' own network ports; parallel to `devices`
  // Parallel to `devices`; with super_pod_id: for a rank table of version 1.2.
  std::vector<std::string> super_device_ids;
  std::string super_pod_id;
  std::string server_id;  // the server's name in a rank table; empty: `address`
  // First of kHcclPorts ports on the host, for HCCL_IF_BASE_PORT; 0: HCCL's own default.
  std::uint16_t hccl_port = 0;
  friend bool operator==(const PlacedNode&, const PlacedNode&) = default;
};

// A node that has shards of an attempt on its own disk (checkpoint.storage: local).
struct ShardHolder {
  NodeName node;
  RankNo first_rank;
  std::uint32_t ranks = 0;  // 0: it has the shards of all ranks
  [[nodiscard]] bool has(RankNo rank) const {
    return ranks == 0 || (rank >= first_rank && rank.value - first_rank.value < ranks);
  }
  friend bool operator==(const ShardHolder&, const ShardHolder&) = default;
};
struct OwnedShards {
  AttemptNo attempt;
  std::vector<ShardHolder> holders;
  friend bool operator==(const OwnedShards&, const OwnedShards&) = default;
};

// A complete checkpoint of an earlier job. The job's node script named `named_dir` for it, but the
// job saved elsewhere, because muster redirected it (saved_before.h).
struct SavedBefore {
  std::string named_dir;  // absolute
  JobId job;
  std::string path;  // directory of the checkpoint itself; empty: the job has none
  std::int64_t step = 0;
  friend bool operator==(const SavedBefore&, const SavedBefore&) = default;
};

}  // namespace muster::engine
