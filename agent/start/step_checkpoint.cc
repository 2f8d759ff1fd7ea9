// The steps of a start that read checkpoints: Checkpoints and Links.
#include <utility>

#include "agent/saves/checkpoint_reading.h"
#include "agent/start/run_dirs.h"
#include "agent/start/start_work.h"

namespace muster::agent {

StepResult step_checkpoints(StartWork& work) {
  v1::CheckpointReading reading;
  std::string text = find_newer(work.order, reading, work.owner());
  if (text.empty()) return {};
  return std::unexpected(Refusal{.why = v1::START_FAILURE_CHECKPOINT,
                                 .text = std::move(text),
                                 .checkpoint = std::move(reading)});
}

StepResult step_links(StartWork& work) {
  v1::CheckpointReading reading;
  auto links = make_resume_links(work.order.resume(), work.owner(), reading,
                                 reach_of(work.order, work.owner()));
  if (links) return {};
  if (reading.needed() == 0) return std::unexpected(refusal_of(links.error()));
  return std::unexpected(Refusal{.why = v1::START_FAILURE_CHECKPOINT,
                                 .text = std::move(links.error().message),
                                 .checkpoint = std::move(reading)});
}

}  // namespace muster::agent
