// Builds the paths of the run directory, which has what agent and worker know of one attempt on one
// node. Plain values.
//
// No other code builds these paths.
//
//   <agent state directory>/                    mode 0700
//     identity            node instance, cluster id, newest lineage of the controller's journal,
//                         and of it the highest epoch and the highest acknowledged journal index
//                         (synced: must survive a power cut)
//     credentials.pem     the node's certificate and its key, where the agent got them itself and
//                         --credentials names no other file: mode 0600 (synced)
//     enrol.key           the key of a certificate that the agent has asked for and does not have
//                         yet: mode 0600 (synced)
//     devices             the devices that the agent announced last, for its next start (synced)
//     lock                flock: one agent for each state directory. It has the agent's pid and the
//                         start time of that process.
//     write-test          agent: made and removed every few seconds, to check whether the disk
//                         accepts writes
//     runs/
//       <job>.<attempt>/
//         launch          agent, before the spawn, by rename: what to run. Never changed.
//         claim           O_EXCL, the first to make it owns the start: the worker (pid, start time,
//                         boot id), or the agent (pid 0) for "never"
//         lease           agent, by rename: boot time at which the orphan grace ends. The worker
//                         kills its ranks when that time has passed or the file is gone.
//         events          worker, appended: setup, pids of auxiliary processes and ranks, started,
//                         exits, stop requested, swept
//         wake_fifo       FIFO, made by the agent: the worker writes to it after each write to
//                         `claim` or `events`. Without it the agent checks from time to time.
//         mark            agent, appended: refused, swept by the agent, first step seen, success
//                         seen, evidence lines
//         logs/rank-<N>.log      a rank's stdout and stderr, O_APPEND, the rank writes it itself
//         logs/rank-<N>.cursor   agent: log segments after truncation, punched floor
//         logs/worker.log        the worker's own errors
//         logs/auxiliary-<NAME>.log      an auxiliary process's stdout and stderr
//         logs/auxiliary-<NAME>.cursor   as of a rank
//         logs/auxiliary-rank-<N>.log    agent: its copy of the file into which a node's script
//                                        sends the output of rank N of the training; .cursor as of
//                                        a rank
//         logs/auxiliary-rank-<N>.source agent: how far that copy has come, and in which file
//         setup.sh        agent, before the spawn: the commands of runtime.setup, 0600
//         setup.env       the setup's last act: its environment, which every process of the attempt
//                         inherits
//         logs/setup.log  the setup's stdout and stderr; setup.cursor as of a rank
//         shim/           agent, before the spawn, where a node runs one script: torchrun, msrun
//                         and python as links to muster-worker, first on the script's PATH
//         plog/rank-<N>/  agent, before the spawn: where the rank's engine writes its process log
//                         (ASCEND_PROCESS_LOG_PATH); never more than a bound in it
//         inputs          agent, before the spawn, where the job has inputs in stores: the path of
//                         the job's trees, which stay as long as this directory
//         launches        the launchers in shim/, appended: when each launch inside the script
//                         began, and how it ended
//
// The files survive the death of any process, but not a power loss. There is no sync on the launch
// path; every record carries the boot id instead.
//
// Format: docs/run-directory.md. Version 1 stays readable for ever.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/ids.h"

namespace muster::rundir {

class AgentLayout {
 public:
  explicit AgentLayout(std::filesystem::path state_dir) : root_(std::move(state_dir)) {}
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] std::filesystem::path identity() const { return root_ / "identity"; }
  [[nodiscard]] std::filesystem::path credentials() const { return root_ / "credentials.pem"; }
  [[nodiscard]] std::filesystem::path enrol_key() const { return root_ / "enrol.key"; }
  [[nodiscard]] std::filesystem::path devices() const { return root_ / "devices"; }
  [[nodiscard]] std::filesystem::path lock() const { return root_ / "lock"; }
  [[nodiscard]] std::filesystem::path write_test() const { return root_ / "write-test"; }
  // What was uploaded of jobs' outputs: a file for each (agent/outputs/sent_files.h).
  [[nodiscard]] std::filesystem::path uploaded() const { return root_ / "uploaded"; }
  // Checkpoints that are being uploaded (agent/outputs/frozen_checkpoint.h).
  [[nodiscard]] std::filesystem::path frozen() const { return root_ / "frozen"; }
  // Segments of logs that are being uploaded: a directory for each run
  // (agent/outputs/log_segments.h).
  [[nodiscard]] std::filesystem::path log_segments() const { return root_ / "log-segments"; }
  [[nodiscard]] std::filesystem::path runs() const { return root_ / "runs"; }
  [[nodiscard]] std::filesystem::path run(const JobId& job, AttemptNo attempt) const {
    return runs() / (job.str() + "." + std::to_string(attempt.value));
  }
  // Returns nothing if the name is not a run directory's name.
  static std::optional<std::pair<JobId, AttemptNo>> parse_run_name(const std::string& name);

 private:
  std::filesystem::path root_;
};

inline constexpr const char* kSetupLog = "setup";

class RunLayout {
 public:
  explicit RunLayout(std::filesystem::path run_dir) : root_(std::move(run_dir)) {}
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] std::filesystem::path launch() const { return root_ / "launch"; }
  [[nodiscard]] std::filesystem::path claim() const { return root_ / "claim"; }
  [[nodiscard]] std::filesystem::path lease() const { return root_ / "lease"; }
  [[nodiscard]] std::filesystem::path events() const { return root_ / "events"; }
  [[nodiscard]] std::filesystem::path wake_fifo() const { return root_ / "wake_fifo"; }
  [[nodiscard]] std::filesystem::path mark() const { return root_ / "mark"; }
  [[nodiscard]] std::filesystem::path logs() const { return root_ / "logs"; }
  [[nodiscard]] std::filesystem::path rank_log(std::uint32_t rank) const {
    return logs() / ("rank-" + std::to_string(rank) + ".log");
  }
  [[nodiscard]] std::filesystem::path rank_cursor(std::uint32_t rank) const {
    return logs() / ("rank-" + std::to_string(rank) + ".cursor");
  }
  [[nodiscard]] std::filesystem::path worker_log() const { return logs() / "worker.log"; }
  // is_auxiliary_name() must accept `name`, because it becomes a part of a path.
  [[nodiscard]] std::filesystem::path auxiliary_log(const std::string& name) const {
    return logs() / ("auxiliary-" + name + ".log");
  }
  [[nodiscard]] std::filesystem::path setup_script() const { return root_ / "setup.sh"; }
  [[nodiscard]] std::filesystem::path inputs() const { return root_ / "inputs"; }
  [[nodiscard]] std::filesystem::path setup_environment() const { return root_ / "setup.env"; }
  [[nodiscard]] std::filesystem::path setup_log() const { return logs() / "setup.log"; }
  [[nodiscard]] std::filesystem::path plog_dir(std::uint32_t rank) const {
    return root_ / "plog" / ("rank-" + std::to_string(rank));
  }
  [[nodiscard]] std::filesystem::path shim_dir() const { return root_ / "shim"; }
  [[nodiscard]] std::filesystem::path shim_report() const { return root_ / "launches"; }
  // The log of a process that is no rank, by its log's public name: an auxiliary process's name, or
  // kSetupLog.
  [[nodiscard]] std::filesystem::path node_log(const std::string& name) const {
    return name == kSetupLog ? setup_log() : auxiliary_log(name);
  }
  [[nodiscard]] std::filesystem::path node_log_cursor(const std::string& name) const {
    return logs() / (name == kSetupLog ? "setup.cursor" : "auxiliary-" + name + ".cursor");
  }
  // For a log that is a copy.
  [[nodiscard]] std::filesystem::path node_log_source(const std::string& name) const {
    return logs() / ("auxiliary-" + name + ".source");
  }

 private:
  std::filesystem::path root_;
};

// True for 1 to 64 characters of a-z, A-Z, 0-9, '-' and '_'.
bool is_auxiliary_name(std::string_view name);
// Returns the rank that has this log file ("rank-3.log").
std::optional<std::uint32_t> rank_of_log(std::string_view file_name);
// Returns the name for which RunLayout::node_log has this file ("auxiliary-scheduler.log",
// "setup.log").
std::optional<std::string> name_of_node_log(std::string_view file_name);

// Returns the value of MUSTER_PROCESS_TAG, which a sweep searches in /proc/PID/environ. It depends
// on names alone, so that an agent that lost its state directory can still sweep.
std::string process_tag(const ClusterId& cluster, const JobId& job, AttemptNo attempt,
                        const NodeName& node);
inline constexpr const char* kProcessTagVariable = "MUSTER_PROCESS_TAG";

// For the setup alone: the path of the file for its environment, as the setup's process may open
// it. The script's last line writes there.
inline constexpr const char* kSetupEnvironmentVariable = "MUSTER_SETUP_ENV";

}  // namespace muster::rundir
