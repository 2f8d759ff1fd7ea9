// The steps of a start that make what the job needs on the node's disks: Directories, Code and
// Files.
#include <utility>

#include "agent/code/code_copy.h"
#include "agent/launch/plog_dirs.h"
#include "agent/start/launch_files.h"
#include "agent/start/run_dirs.h"
#include "agent/start/start_work.h"

namespace muster::agent {

StepResult step_directories(StartWork& work) {
  if (auto made = make_output_dirs(work.order, work.owner()); !made)
    return std::unexpected(refusal_of(made.error()));
  return {};
}

// The files of the code can be checked only when the copy exists.
StepResult step_code(StartWork& work) {
  if (auto copied = make_code_copy(work.order, work.context.path, work.owner()); !copied)
    return std::unexpected(refusal_of(copied.error()));
  if (auto refusal = check_files(work.order)) return std::unexpected(*std::move(refusal));
  return {};
}

StepResult step_files(StartWork& work) {
  if (auto written = write_launch_files(work.order, work.layout, work.owner()); !written)
    return std::unexpected(refusal_of(written.error()));
  if (work.owner() != nullptr) return {};  // another user could not reach them
  if (auto made = make_plog_dirs(work.order, work.layout); !made)
    return std::unexpected(refusal_of(made.error()));
  return {};
}

}  // namespace muster::agent
