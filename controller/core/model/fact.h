// Converts between a fact as agents report it (muster.v1.Fact) and the event that it is in the
// core. Pure.
//
// decide() turns a report into an event and bounds it. The journal stores the event as a fact
// again, so a new kind of fact needs no record of its own.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <variant>

#include "controller/core/model/event.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::core {

// The kinds of events that agents report.
using FactBody = std::variant<NodeStarted, NodeStartFailed, RankExited, NodeSwept, FirstStep,
                              AuxiliaryExited, ScriptLaunched, NodeClockSkewed, OutputsUploaded>;

template <class Event, class Kinds>
inline constexpr bool kIsOneOf = false;
template <class Event, class... Kinds>
inline constexpr bool kIsOneOf<Event, std::variant<Kinds...>> = (std::same_as<Event, Kinds> || ...);
template <class Event>
concept FactKind = kIsOneOf<Event, FactBody>;
static_assert(FactKind<RankExited> && !FactKind<JobSubmitted>);

// Who reported a fact, and when it happened by the controller's clock.
struct FactSource {
  NodeName node;
  InstanceId instance;  // empty: the controller concluded the fact itself
  WallTime controller_time;
};

struct FactEvent {
  // Nothing: a kind of fact that is not known here.
  std::optional<FactBody> body;
  // Names the value of an enum that is not known here: "start failure 9". The event has another
  // value in its place. Empty: all are known.
  std::string unknown;
};
// The whole fact, without bounds. Times are clamped, see proto_time.h.
FactEvent event_of(const v1::Fact& fact, const FactSource& source);

// The opposite. The fact has no `age`, because controller_time holds what follows from it.
v1::Fact fact_of(const FactBody& body);

}  // namespace muster::core
