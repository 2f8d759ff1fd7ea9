// Reads what the core needs from a job spec, with defaults for specs that were stored before a
// field existed. Pure.
#pragma once

#include <algorithm>

#include "common/base/lease.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"
#include "common/store/store_url.h"
#include "muster/v1/spec.pb.h"

namespace muster::core {

inline Duration orphan_grace(const v1::JobSpec& spec) {
  return spec.recovery().has_orphan_grace() ? to_duration(spec.recovery().orphan_grace())
                                            : std::chrono::minutes(30);
}
// Between the worker's SIGTERM and its SIGKILL, also when it stops orphaned ranks.
inline Duration stop_grace(const v1::JobSpec& spec) {
  return to_duration(spec.recovery().stop_grace());
}
// From a node's last contact until no rank lives there any more. When the lease ends, the worker
// asks its ranks to end, and kills them one stop grace later.
inline Duration outlives_contact(const v1::JobSpec& spec) {
  return orphan_grace(spec) + lease_step(orphan_grace(spec)) + stop_grace(spec);
}
// Zero or less: no window, so every restart counts for ever.
inline Duration restart_window(const v1::JobSpec& spec) {
  return spec.recovery().has_window() ? to_duration(spec.recovery().window())
                                      : std::chrono::hours(24);
}
inline std::uint32_t max_restarts(const v1::JobSpec& spec) {
  return spec.recovery().has_max_restarts() ? spec.recovery().max_restarts() : 20;
}
// From the end of a charged attempt to the next one, before it is doubled. Zero: none.
inline Duration restart_backoff(const v1::JobSpec& spec) {
  return to_duration(spec.recovery().backoff());
}
inline bool resumes(const v1::JobSpec& spec) {
  const bool enabled = !spec.resume().has_enabled() || spec.resume().enabled();
  return enabled && !spec.checkpoint().layout().empty() && spec.checkpoint().layout() != "none";
}
// The job resumes from the checkpoint of spec.start as from its own. Otherwise it takes the weights
// of that checkpoint, and begins at step 0.
inline bool goes_on_from_start(const v1::JobSpec& spec) {
  return resumes(spec) && (spec.start().as() == v1::START_AS_RESUME ||
                           spec.start().as() == v1::START_AS_RESUME_OR_SCRATCH);
}
// Each node has its own disk: the agent fetches what others have saved before a start.
inline bool fetches_files(const v1::JobSpec& spec) {
  return spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL;
}
// Each node makes a copy of the code.
inline bool copies_code(const v1::JobSpec& spec) { return !spec.code().patches().empty(); }
// Each node fetches inputs from stores.
inline bool has_staged_input(const v1::JobSpec& spec) {
  return std::ranges::any_of(
      spec.inputs(), [](const v1::InputSpec& input) { return store::is_url(input.from()); });
}
// Nodes upload what it has written.
inline bool uploads_outputs(const v1::JobSpec& spec) { return !spec.outputs().to().empty(); }
inline bool uploads_logs(const v1::JobSpec& spec) { return !spec.outputs().logs_to().empty(); }
// How long copying the code, fetching files, loading runtime.image and running runtime.setup may
// delay a start; each has the same limit. Inputs may have a day: an agent gives up by itself when
// nothing comes. Zero: the job has none of them.
inline Duration setup_time(const v1::JobSpec& spec) {
  const int parts = (copies_code(spec) ? 1 : 0) + (spec.runtime().setup().empty() ? 0 : 1) +
                    (spec.runtime().image().empty() ? 0 : 1) + (fetches_files(spec) ? 1 : 0);
  return parts * (spec.runtime().has_setup_timeout() ? to_duration(spec.runtime().setup_timeout())
                                                     : Duration(std::chrono::minutes(30))) +
         (has_staged_input(spec) ? Duration(std::chrono::hours(24)) : Duration::zero());
}
// A missing value means no: the stricter fence.
inline bool lockstep(const v1::JobSpec& spec) {
  return spec.launch().has_lockstep() && spec.launch().lockstep();
}

}  // namespace muster::core
