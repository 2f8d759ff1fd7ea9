// Compares which files the nodes of an attempt have of the job's inputs in stores. Pure.
//
// Each node lists a store by itself, or takes what an earlier attempt had (JobRecord::input_pins).
// An attempt in which two nodes have different files is broken, and the next one lists anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/core/model/ledger.h"

namespace muster::core {

// Leaves out what is none of the attempt's inputs, and repetitions; without `others`, all but the
// inputs.
void bound_inputs(const AttemptRecord& attempt, v1::NodeResolved& resolved, bool others);

// All other nodes that run something of the attempt have reported the same of this input.
bool all_agree(const AttemptRecord& attempt, const NodeName& node, const v1::InputState& input);

// The inputs of which all nodes have the same, but not what the job had before; only if this is the
// last node to start.
std::vector<std::string> changed_inputs(const JobRecord& job, const AttemptRecord& attempt,
                                        const NodeStarted& event);

struct DifferingInput {
  std::string name;
  std::string text;  // a sentence with both nodes
};
// The first input of which this node has other files than one that has started before. None:
// there is no such input.
std::optional<DifferingInput> differing_input(const JobRecord& job, const AttemptRecord& attempt,
                                              const NodeStarted& event);

}  // namespace muster::core
