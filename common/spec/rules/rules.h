// The rules of the job spec, one source for each section: a function fills in the defaults of its
// section, and reports what does not fit together under the key that is wrong. Pure.
//
// complete() (common/spec/parse.h) calls them in the order of this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/engine/model/engine.h"
#include "muster/v1/spec.pb.h"

namespace muster::spec {

inline constexpr std::size_t kCodePatchBytesMax = 512U << 10U;  // of one diff
inline constexpr int kCodePatchesMax = 64;
inline constexpr std::uint32_t kMillicpusMax = 4'096'000;
inline constexpr std::uint32_t kStagesMost = 32;

// A spec whose rules are being applied. complete() makes one for each spec, on the stack.
struct Draft {
  v1::JobSpec& spec;
  std::function<void(std::string key, std::string message)> problem;
  // The engine that is meant; nullptr: it is unknown. complete_job() sets it.
  const engine::Engine* engine = nullptr;
  bool too_many_words = false;  // a command line of the spec is not worth expanding
};

// name, description, labels, compat, engine. The other rules need the engine.
void complete_job(Draft& draft);
void complete_code(Draft& draft);
void complete_runtime(Draft& draft);
void complete_launch(Draft& draft);
// An argument of the engine's own that names data in a store becomes an input: as if the spec had
// it below inputs, and ${inputs.NAME} in the argument's place. Before check_inputs.
void complete_arguments(Draft& draft);
// After complete_launch: the user's rank table fits launch.per.
void complete_resources(Draft& draft);
void complete_network(Draft& draft);
// spec.stage, a job's description of itself as one stage of a chain. Code that has the whole chain
// checks whether the stages that it names exist.
void complete_stage(Draft& draft);
void complete_checkpoint(Draft& draft);
void complete_resume(Draft& draft);
void check_outputs(Draft& draft);
// Only the controller knows which jobs and stages start, inputs and schedule mean.
void complete_start(Draft& draft);
void check_inputs(Draft& draft);
void complete_observe(Draft& draft);
void complete_success(Draft& draft);
void complete_recovery(Draft& draft);
void complete_schedule(Draft& draft);

}  // namespace muster::spec
