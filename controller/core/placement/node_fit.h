// What one node has for a job, whether it is free or not, and what a placement records about the
// node. Pure.
//
// The record makes a launch a function of its placement, whatever the node reports later.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/model/engine.h"
#include "controller/core/model/ledger.h"
#include "controller/core/placement/card_choice.h"

namespace muster::core {

// Numbers that several devices of the node share. Nobody knows which of them a rank would get, or
// which process uses it. Such devices get no work.
std::set<std::uint32_t> ambiguous_ids(const v1::Inventory& inventory);
// Removes such devices, and adds a finding about them.
void leave_out_ambiguous(v1::Inventory& inventory);

// Devices of one node for a job, or why there are none.
struct Fit {
  std::vector<std::uint32_t> devices;
  std::string why;
  // If `why` is set: the node's cards have no addresses, which a rank table over several nodes
  // needs.
  bool lacks_addresses = false;
};

// What the node could give if it were idle: all devices to choose from, by id, or the reason if
// they are too few. `type` is a device's own type, not what resources.type may contain.
Fit capacity(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type);

// The super-pod of all its devices of this type. Empty: there is none.
std::string pod_of(const NodeRecord& node, std::string_view type);
// How many of these devices have their own address.
std::size_t count_addressed(const NodeRecord& node, std::string_view type,
                            const std::vector<std::uint32_t>& devices);

// What the node lacks, whatever its devices are: it is dead, or lacks the labels, the interface or
// the agent. Empty: nothing.
std::string lacks_apart_from_devices(const NodeRecord& node, const v1::JobSpec& spec);

// The types of device that fit, in the order in which they are tried.
std::vector<std::string> types_to_try(std::span<const NodeRecord* const> nodes,
                                      const v1::JobSpec& spec);

// Where the job's traffic goes, as far as the node itself knows: its address, or that of
// network.interface. Empty: it has none there. For a job over several nodes, training_route.h may
// replace the node's address.
std::string training_address(const NodeRecord& node, const v1::JobSpec& spec);

// The placed node without ranks, ports and a name for rank tables.
PlacedNode pinned(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type,
                  std::vector<std::uint32_t> devices);

// Names the nodes of a placement for rank tables, if their addresses are not unique or too long for
// one.
void name_servers(std::vector<PlacedNode>& nodes);

}  // namespace muster::core
