#include "controller/core/model/attempt_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/digest/hex.h"

namespace muster::core {
namespace {

// What the part's node has reported of the input. Nullptr: nothing.
const v1::InputState* state_of(const NodePart& part, const std::string& name) {
  const auto& inputs = part.resolved.inputs();
  const auto found = std::ranges::find(inputs, name, &v1::InputState::name);
  return found == inputs.end() ? nullptr : &*found;
}

}  // namespace

void bound_inputs(const AttemptRecord& attempt, v1::NodeResolved& resolved, bool others) {
  std::set<std::string> seen;
  auto& inputs = *resolved.mutable_inputs();
  const auto is_none = [&](const v1::InputState& one) {
    return std::ranges::find(attempt.inputs, one.name(), &PinnedInput::input) ==
               attempt.inputs.end() ||
           !is_sha256_hex(one.contents_sha256()) || !seen.insert(one.name()).second;
  };
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), is_none), inputs.end());
  if (others) return;
  v1::NodeResolved alone;
  for (const v1::InputState& one : inputs) {
    v1::InputState& known = *alone.add_inputs();  // without fields that are unknown here
    known.set_name(one.name());
    known.set_contents_sha256(one.contents_sha256());
    known.set_objects(one.objects());
    known.set_bytes(one.bytes());
    known.set_fetched_bytes(one.fetched_bytes());
  }
  resolved = std::move(alone);
}

bool all_agree(const AttemptRecord& attempt, const NodeName& node, const v1::InputState& input) {
  return std::ranges::all_of(attempt.parts, [&](const NodePart& part) {
    if (part.idle() || part.placed.node == node) return true;
    const v1::InputState* other = state_of(part, input.name());
    return other != nullptr && other->contents_sha256() == input.contents_sha256();
  });
}

std::vector<std::string> changed_inputs(const JobRecord& job, const AttemptRecord& attempt,
                                        const NodeStarted& event) {
  std::vector<std::string> changed;
  if (attempt.parts_started + 1 != attempt.parts.size()) return changed;
  for (const v1::InputState& one : event.resolved.inputs()) {
    const auto before = job.input_pins.find(one.name());
    if (before != job.input_pins.end() && before->second.contents_sha256 != one.contents_sha256() &&
        all_agree(attempt, event.node, one))
      changed.push_back(one.name());
  }
  return changed;
}

std::optional<DifferingInput> differing_input(const JobRecord& job, const AttemptRecord& attempt,
                                              const NodeStarted& event) {
  for (const v1::InputState& one : event.resolved.inputs()) {
    const auto part = std::ranges::find_if(attempt.parts, [&](const NodePart& other) {
      return other.placed.node != event.node && state_of(other, one.name()) != nullptr;
    });
    if (part == attempt.parts.end()) continue;
    const v1::InputState& other = *state_of(*part, one.name());
    if (other.contents_sha256() == one.contents_sha256()) continue;
    const auto input = std::ranges::find(job.spec.inputs(), one.name(), &v1::InputSpec::name);
    return DifferingInput{
        .name = one.name(),
        .text = fmt::format(
            "inputs.{} has other files on node '{}' than on node '{}' ({} of {} bytes, and {} of "
            "{} bytes): somebody writes to '{}' while nodes list it, or has done so since the job "
            "began; the next attempt lists it anew",
            one.name(), event.node.str(), part->placed.node.str(), one.objects(), one.bytes(),
            other.objects(), other.bytes(),
            input == job.spec.inputs().end() ? std::string() : input->from())};
  }
  return std::nullopt;
}

}  // namespace muster::core
