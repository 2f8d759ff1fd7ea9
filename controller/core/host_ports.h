// Ports of one placement, out of the controller's range: rank 0's own, and for HCCL a block on
// every host. None that an attempt has which is not over and swept, nor one of those that are just
// over as long as there are others. A host is a node with all that have its address. Pure; lives
// for one placement.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controller/core/placing.h"

namespace muster::core {

class HostPorts {
 public:
  HostPorts(const Taken& taken, const Ledger& ledger, const JobRecord& job, const Limits& limits)
      : taken_(taken), ledger_(ledger), job_(job), limits_(limits) {}

  // For rank 0 on this node, in none of these blocks of its own placement. 0: none.
  std::uint16_t master(const NodeName& node, const std::string& address,
                       const std::vector<std::uint16_t>& excluded = {});

  // Whether ranks of this job on such devices are given blocks. Not out of a range without room for
  // any: HCCL uses its own ports then.
  [[nodiscard]] bool needs_blocks(std::string_view type) const;
  // Of a job that is given blocks: how many of its nodes one host has ports for where nothing else
  // runs. One is left for rank 0, which may come to any host.
  [[nodiscard]] std::size_t nodes_a_host() const;
  struct Wanted {
    NodeName node;
    std::string address;
    std::uint16_t master_port = 0;     // on this host, of this placement; 0: it is elsewhere
    std::vector<std::uint16_t> given;  // blocks of this placement on the host
  };
  // The first of engine::kHcclPorts ports that are free on all of these hosts; where all free ones
  // are recent, of those that have been so longest. 0: none are.
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
  // This one and all others of the node: a program takes its port on all of them.
  const std::vector<std::string>& addresses_of(const NodeName& node, const std::string& address);
  std::size_t age_of(std::uint16_t first, const std::vector<Wanted>& hosts);

  const Taken& taken_;
  const Ledger& ledger_;
  const JobRecord& job_;
  const Limits& limits_;
  std::map<NodeName, Blocks> blocks_;
  std::map<std::pair<NodeName, std::string>, std::vector<std::string>> addresses_;
  // by address; filled at first use
  std::unordered_map<std::string_view, std::vector<const NodeRecord*>> hosts_;
};

}  // namespace muster::core
