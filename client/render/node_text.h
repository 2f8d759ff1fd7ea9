// Text about the state of a node for people: ready, draining, silent, its labels. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/render/style.h"
#include "common/base/time.h"
#include "muster/v1/node.pb.h"

namespace muster::render {

// "ready", "disk" (its state directory takes no writes), "silent", "away", "dead". A node that
// drains is "draining" or "drained" instead of "ready"; with another state, both: "away, drained".
std::string node_state_text(const v1::Node& node);
Tint node_state_tint(const v1::Node& node);

// "by ann since 2026-03-01T12:00:00.000Z (3m20s ago): new disk". Only for a node that drains.
std::string drain_text(const v1::Drain& drain, WallTime now);
// What happens to what runs there: "in 10m00s, at 2026-03-01T12:10:00.000Z: ...". Empty: there is
// no deadline, or nothing runs there any more.
std::string drain_deadline_text(const v1::Drain& drain, WallTime now);

// The labels that count: what operators have set goes before what the agent reports.
std::map<std::string, std::string> node_labels(const v1::Node& node);
// All of them, "rack=r1,zone=a", or "-".
std::string labels_text(const v1::Node& node);

// What is known of the storage below the directory of outputs, for a table: "3f9a1c02 (4)", that
// storage and how many nodes share it; "error" (it cannot be written), "?" (not known yet), "-".
std::string outputs_text(const v1::Node& node);

}  // namespace muster::render
