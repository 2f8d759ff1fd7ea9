// Chooses the ports of one placement out of the controller's range: one for rank 0, and for HCCL a
// block on every host. Placer (place.cc) owns one for each placement. Pure.
//
// It never gives a port of an attempt that has not ended or is not swept. It gives ports of
// attempts that ended recently only if there are no others. A host is a node together with all
// nodes that have its address.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controller/core/placement/placing.h"

namespace muster::core {

class HostPorts {
 public:
  HostPorts(const Taken& taken, const Ledger& ledger, const JobRecord& job, const Limits& limits)
      : taken_(taken), ledger_(ledger), job_(job), limits_(limits) {}

  // A port for rank 0 on this node, outside the `excluded` blocks of the same placement. 0: there
  // is none.
  std::uint16_t master(const NodeName& node, const std::string& address,
                       const std::vector<std::uint16_t>& excluded = {});

  // Whether ranks of this job on such devices get blocks. They get none if the range has no room
  // for a block; then HCCL uses its own ports.
  [[nodiscard]] bool needs_blocks(std::string_view type) const;
  // For a job that gets blocks: how many of its nodes one host has ports for, if nothing else runs
  // there. One port is left for rank 0, which may be on any host.
  [[nodiscard]] std::size_t nodes_a_host() const;
  struct Wanted {
    NodeName node;
    std::string address;
    std::uint16_t master_port = 0;     // of this placement on this host; 0: on another host
    std::vector<std::uint16_t> given;  // blocks of this placement on the host
  };
  // The first of engine::kHcclPorts ports that are free on all these hosts. If all free ones were
  // used recently, the least recent ones are taken. 0: none is free.
  std::uint16_t block(const std::vector<Wanted>& hosts);

 private:
  struct Recent {
    std::uint16_t first;
    std::size_t age;  // how many attempts of its node are more recent
  };
  struct Blocks {
    std::vector<std::uint16_t> reserved;
    std::vector<Recent> recent;
  };
  const Blocks& blocks_of(const NodeName& node);
  void collect(const NodeName& node, Blocks& into) const;
  [[nodiscard]] std::uint16_t block_of(const AttemptKey& key, const NodeName& node) const;
  [[nodiscard]] bool is_free(const std::string& address, std::uint16_t port) const;
  [[nodiscard]] bool any_port_reserved(const std::string& address, std::uint16_t first) const;
  // This address and all others of the node, because a program takes its port on all of them.
  const std::vector<std::string>& addresses_of(const NodeName& node, const std::string& address);
  std::size_t age_of(std::uint16_t first, const std::vector<Wanted>& hosts);

  const Taken& taken_;
  const Ledger& ledger_;
  const JobRecord& job_;
  const Limits& limits_;
  std::map<NodeName, Blocks> blocks_;
  std::map<std::pair<NodeName, std::string>, std::vector<std::string>> addresses_;
  // By address; filled at the first use.
  std::unordered_map<std::string_view, std::vector<const NodeRecord*>> hosts_;
};

}  // namespace muster::core
