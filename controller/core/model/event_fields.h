// Returns the job, attempt and node of an event, whatever its kind. Pure.
#pragma once

#include <variant>

#include "controller/core/model/event.h"

namespace muster::core {

// Nullptr: the event is not about a job.
inline const JobId* job_of(const EventBody& body) {
  return std::visit(
      [](const auto& event) -> const JobId* {
        if constexpr (requires { event.job; }) return &event.job;
        return nullptr;
      },
      body);
}
// 0: the event is not about one attempt.
inline AttemptNo attempt_of(const EventBody& body) {
  return std::visit(
      [](const auto& event) {
        if constexpr (requires { event.attempt; }) return event.attempt;
        return AttemptNo();
      },
      body);
}
// Nullptr: the event is not about one node.
inline const NodeName* node_of(const EventBody& body) {
  return std::visit(
      [](const auto& event) -> const NodeName* {
        if constexpr (requires { NodeName(event.node); }) return &event.node;
        return nullptr;
      },
      body);
}

}  // namespace muster::core
