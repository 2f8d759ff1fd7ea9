// What one node has for a job, whether anything of it is free or not; and what is written down of
// it when the job is placed there, so that a launch is a function of its placement, whatever the
// node reports later. Pure.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/engine.h"
#include "controller/core/card_choice.h"
#include "controller/core/ledger.h"

namespace muster::core {

// Numbers that more than one of its devices has: nobody can say which of them a rank would get, or
// who holds it. Such devices get no work.
std::set<std::uint32_t> ambiguous_ids(const v1::Inventory& inventory);
// Leaves such devices out, and says so in a finding.
void leave_out_ambiguous(v1::Inventory& inventory);

// Devices of one node for a job, or why there are none.
struct Fit {
  std::vector<std::uint32_t> devices;
  std::string why;
  // why: its cards have no addresses, which a rank table over several nodes needs
  bool lacks_addresses = false;
};

// What the node could give if it were idle: all that may be chosen from, by id; the reason when
// that is not enough. `type` is a device's own, not what resources.type may ask for.
Fit capacity(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type);

// The super-pod that all its devices of this type are in. Empty: none.
std::string pod_of(const NodeRecord& node, std::string_view type);
// How many of these devices have an address of their own.
std::size_t count_addressed(const NodeRecord& node, std::string_view type,
                            const std::vector<std::uint32_t>& devices);

// What the node lacks whatever its devices are: it is dead, or has not the labels, the interface or
// the agent. Empty: nothing.
std::string lacks_apart_from_devices(const NodeRecord& node, const v1::JobSpec& spec);

// Types of device that would do, in the order in which they are tried.
std::vector<std::string> types_to_try(std::span<const NodeRecord* const> nodes,
                                      const v1::JobSpec& spec);

// Where the job's traffic goes as far as the node itself can tell: its address, or that of
// network.interface. Empty: it has none there. Over several nodes the former may become another
// (training_route.h).
std::string training_address(const NodeRecord& node, const v1::JobSpec& spec);

// Without ranks, ports and a name for rank tables.
PlacedNode pinned(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type,
                  std::vector<std::uint32_t> devices);

// Gives the nodes of a placement names for rank tables, where their addresses are not unique or too
// long for one.
void name_servers(std::vector<PlacedNode>& nodes);

}  // namespace muster::core
