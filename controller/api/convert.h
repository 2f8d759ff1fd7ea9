// Converts the core's values into the messages that clients get. Pure.
#pragma once

#include <optional>
#include <string>

#include "controller/core/model/ledger.h"
#include "controller/core/model/presence.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/job_service.pb.h"
#include "muster/v1/node.pb.h"

namespace muster::controller {

v1::JobPhase to_v1(core::JobPhase phase);
v1::Verdict to_v1(const core::Verdict& verdict);
v1::NodePlacement to_v1(const core::NodePart& part);
v1::ResumePoint to_v1(const core::ResumePoint& resume);

// The latest reading of the newest attempt with readings. Nothing: there is none since this
// controller started.
std::optional<v1::Progress> progress_of(const core::Presence& presence, const JobId& job);

// - List: what a row of a list shows. Of the spec only name, description, labels, engine,
//   recovery.max_restarts and its stage (a spec may have a megabyte), and as schedule.after the
//   jobs that it still waits for. The last attempt without its exits; its nodes as far as they fit
//   into half a megabyte; no incidents.
// - Full: attempts and incidents by the rule of attempt_detail.h.
//
// fill() adds the checkpoints. Sentences are cut (bounded.h). The owner is as recorded, and all is
// shown: show_to() of withhold.h does the rest.
enum class Detail { List, Full };
v1::Job to_v1(const core::JobRecord& job, const core::Presence& presence,
              const std::string& cluster_out, Detail detail);

inline constexpr std::size_t kCheckpointsMost = 1'000;  // in one answer
// Full, with the newest kCheckpointsMost checkpoints before the `before`-th (0: before the end), or
// fewer if their paths are long. Below 4 MiB, whatever the job is.
void fill(v1::GetJobResponse& response, const core::JobRecord& job, const core::Presence& presence,
          const std::string& cluster_out, std::uint32_t before);

// As GetNode shows it.
v1::Node to_v1(const core::NodeRecord& node, const core::Ledger& ledger,
               const core::Presence& presence, BootTime now, Duration silent_after);
// How much of a node an answer has room for.
//
// - Brief: what a row of a list and its marks need.
// - WithoutReadings: as Brief, without readings and the names of the jobs that use its devices.
// - Least: its names, its addresses, and whether it is connected; no devices.
enum class NodeDetail : std::uint8_t { Full, Brief, WithoutReadings, Least };
NodeDetail less(NodeDetail detail);
// Removes what is beyond `detail`. Returns the bytes that the node then takes in a list.
std::size_t shrink(v1::Node& node, NodeDetail detail);

}  // namespace muster::controller
