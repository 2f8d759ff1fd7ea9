// Judges what is known of the cluster and its nodes: what is well, what is not, what would help.
// `muster doctor` prints all of it; `muster node show` and `muster cluster status` a part. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/render/style.h"
#include "common/base/time.h"
#include "muster/v1/node_service.pb.h"

namespace muster::render {

enum class Level : std::uint8_t { Ok, Warn, Bad };

struct Check {
  Level level = Level::Ok;
  std::string subject;  // "controller", "node n1"
  std::string what;     // one word or two: "clock"
  std::string text;
  std::string advice = {};  // empty: nothing has to be done
};

std::string_view to_string(Level level);  // "ok", "warn", "bad"
Tint tint_of(Level level);

// Certificates that end within this time are worth a warning. A node renews its own when ten days
// of thirty are left (agent/enrol/renewal.h): before that there is nothing to warn of.
inline constexpr Duration kEndsSoon = std::chrono::hours(24 * 7);

// How an agent's disk, clock, control groups, programs and certificate are, as far as the node
// reports it. `version` is the controller's.
std::vector<Check> node_checks(const v1::Node& node, const std::string& version, WallTime now);

// The disk of the node's state directory alone. Not set: the node does not report it.
std::optional<Check> disk_check(const v1::Node& node);

// The directory of outputs on the node alone. Not set: the node does not report it.
std::optional<Check> outputs_check(const v1::Node& node);
// Whether the connected nodes see the same files there. Not set: nothing is known of them.
std::optional<Check> shared_outputs_check(
    const google::protobuf::RepeatedPtrField<v1::Node>& nodes);

// What the controller says of itself.
std::vector<Check> controller_checks(const v1::GetClusterStatusResponse& status, WallTime now);

// The difference between this machine's clock and the controller's; negative: this one is behind.
Check client_clock_check(Duration ahead);

// "ends in 12d04h" and the like, judged. `renewal` is the advice.
Check certificate_check(std::string subject, WallTime ends, WallTime now, std::string renewal);
// Of the person who calls. One for a day is not soon over while most of the day is left.
Check client_certificate_check(WallTime begins, WallTime ends, WallTime now);

}  // namespace muster::render
