#include "agent/run/run_view.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "agent/container/container_command.h"
#include "agent/logs/logs_dir.h"
#include "common/base/utf8.h"

namespace muster::agent {
namespace {

using rundir::v1::Event;
using rundir::v1::Mark;

constexpr std::uint32_t kRanksMost = 4096;  // per node, if only file names show the ranks
// per run; the controller takes a few more logs in addition to those of its ranks
constexpr std::size_t kScriptLogsMost = 64;
constexpr std::size_t kAuxiliariesMost = 16 + kScriptLogsMost;

// Returns what the launch record adds to its order. Both are sorted by name, and so is the result.
// Another user cannot reach what is in the run directory.
v1::NodeResolved resolved_of(const rundir::v1::Launch& launch, const v1::NodeLaunch& order,
                             const rundir::RunLayout& run) {
  v1::NodeResolved resolved;
  if (!launch.set_user() && is_utf8(run.root().native())) resolved.set_run_dir(run.root().string());
  for (const std::string& variable : launch.env()) {
    const auto asked = order.env().find(variable.substr(0, variable.find('=')));
    if (asked == order.env().end() || variable != asked->first + "=" + asked->second)
      resolved.add_env(variable);
  }
  for (const std::string& input : launch.inputs()) resolved.add_inputs()->ParseFromString(input);
  bool alike = true;
  for (const auto& rank : launch.ranks()) {
    resolved.add_programs(rank.argv_size() > 0 ? rank.argv(0) : "");
    alike = alike && resolved.programs(0) == resolved.programs(resolved.programs_size() - 1);
  }
  if (alike && resolved.programs_size() > 1)
    resolved.mutable_programs()->DeleteSubrange(1, resolved.programs_size() - 1);
  return resolved;
}

v1::SweptWhy ended_because(rundir::v1::StopRequested::Why why) {
  if (why == rundir::v1::StopRequested::WHY_ASKED) return v1::SWEPT_WHY_STOPPED;
  if (why == rundir::v1::StopRequested::WHY_ORPHANED) return v1::SWEPT_WHY_ORPHANED;
  return v1::SWEPT_WHY_ENDED;
}

}  // namespace

Result<bool> RunView::refresh() {
  bool changed = false;
  const WorkerState worker_before = seen_.worker;
  const bool launch_before = seen_.launch_sound;
  if (auto read = read_launch(); !read) return fail(std::move(read).error());
  if (auto read = read_claim(); !read) return fail(std::move(read).error());
  // The worker is judged before its events are read. A worker that dies in between has written its
  // last event by then. So a Dead worker never hides an event.
  judge_worker();
  auto marks = marks_.read();
  if (!marks) return fail(std::move(marks).error());
  for (const Mark& mark : *marks) fold(mark);
  auto events = events_.read();
  if (!events) return fail(std::move(events).error());
  if (!events->empty()) seen_.worker_spoke = true;
  for (const Event& event : *events) fold(event);
  if (seen_.swept && !launch_ && !ranks_traced_) trace_ranks();
  changed = !marks->empty() || !events->empty() || seen_.worker != worker_before ||
            seen_.launch_sound != launch_before;
  return changed;
}

Result<void> RunView::read_launch() {
  if (launch_) return {};
  auto launch = rundir::read_launch(layout_);
  if (!launch) {
    // The record is damaged, or a newer release wrote it. Claim and events still show what runs;
    // only its contents are unknown.
    if (launch.error().code == ErrorCode::DataLoss ||
        launch.error().code == ErrorCode::Unsupported) {
      launch_wrong_ = std::move(launch.error().message);
      return {};
    }
    return fail(std::move(launch).error());
  }
  if (!*launch) return {};
  launch_ = **launch;
  order_.ParseFromString(launch_->order());
  seen_.launch_sound = true;
  seen_.uploads = order_.has_upload();
  seen_.uploads_logs = order_.has_logs_upload();
  seen_.boot_id = BootId(launch_->boot_id());
  seen_.ranks.clear();
  for (const auto& rank : launch_->ranks()) seen_.ranks.push_back(rank.rank());
  seen_.resolved = resolved_of(*launch_, order_, layout_);
  // Only the worker needs command lines and environments, which are megabytes at 64 ranks.
  launch_->clear_ranks();
  launch_->clear_env();
  launch_->clear_order();
  launch_->clear_auxiliaries();
  // A container's record is kept, because its mounts show where its files are on the node. Of each
  // rank, only the success file is kept, which is checked at its end.
  google::protobuf::RepeatedPtrField<v1::RankProcess> ranks;
  for (const v1::RankProcess& rank : order_.ranks()) {
    seen_.devices.insert(rank.devices().begin(), rank.devices().end());
    if (rank.success_file().empty()) continue;
    ranks.Add()->set_rank(rank.rank());
    ranks.Mutable(ranks.size() - 1)->set_success_file(rank.success_file());
  }
  order_.mutable_ranks()->Swap(&ranks);
  order_.clear_env();
  order_.clear_files();
  for (v1::AuxiliaryProcess& auxiliary : *order_.mutable_auxiliaries()) {
    std::string name = std::move(*auxiliary.mutable_name());
    auxiliary.Clear();
    auxiliary.set_name(std::move(name));
  }
  return {};
}

Result<void> RunView::read_claim() {
  if (claim_ || claim_damaged_) return {};
  auto claim = rundir::read_claim(layout_);
  if (!claim) {
    if (claim.error().code != ErrorCode::DataLoss) return fail(std::move(claim).error());
    claim_wrong_ = std::move(claim.error().message);
    claim_damaged_ = true;  // claimed, but unreadable: swept like a worker that cannot be found
    return {};
  }
  if (!*claim) return {};
  claim_ = **claim;
  seen_.worker_pid = claim_->pid();
  if (seen_.boot_id.empty()) seen_.boot_id = BootId(claim_->boot_id());
  return {};
}

void RunView::judge_worker() {
  if (claim_damaged_) {
    seen_.worker = WorkerState::Dead;
    return;
  }
  if (!claim_) {
    seen_.worker = spawned_ ? WorkerState::Spawned : WorkerState::None;
    return;
  }
  if (claim_->pid() == 0) {
    seen_.worker = WorkerState::Never;
    return;
  }
  if (!worker_ && !worker_gone_) {
    worker_unknown_.reset();
    if (claim_->boot_id() != own_boot_.str()) {
      worker_gone_ = true;
    } else if (auto opened = process::Pidfd::open(
                   {.pid = static_cast<pid_t>(claim_->pid()), .start_time = claim_->start_time()});
               opened) {
      worker_ = std::move(*opened);
    } else if (opened.error().code == ErrorCode::NotFound) {
      worker_gone_ = true;
    } else {
      // a lack of descriptors in the agent must not cause the sweep of a healthy run
      worker_unknown_ = std::move(opened.error());
    }
  }
  if (worker_ && worker_->exited()) worker_gone_ = true;
  seen_.worker = worker_gone_ ? WorkerState::Dead : WorkerState::Alive;
}

void RunView::fold(const Event& event) {
  const WallTime at = rundir::wall_time(event);
  switch (event.what_case()) {
    case Event::kRankStarted: {
      const auto& started = event.rank_started();
      seen_.pids[started.rank()] = started.pid();
      leaders_.push_back(
          {.pid = static_cast<pid_t>(started.pid()), .start_time = started.start_time()});
      break;
    }
    case Event::kStarted:
      seen_.started = true;
      seen_.started_at = at;
      break;
    case Event::kStartFailed:
      seen_.start_failed = event.start_failed().text();
      seen_.start_failed_error = event.start_failed().error();
      seen_.start_failed_at = at;
      break;
    case Event::kExited: {
      const auto& exited = event.exited();
      ExitSeen& exit = seen_.exits[exited.rank()];
      exit = {.rank = exited.rank(),
              .code = exited.code(),
              .signal = exited.signal(),
              .stop_requested = exited.stop_requested(),
              .oom = exited.oom(),
              .killed_unasked = exited.killed_unasked(),
              .at = at,
              .boot = BootTime(Duration(event.boot_ns()))};
      if (exited.has_training_rank()) exit.training_rank = exited.training_rank();
      if (const auto end = ends_.find(exited.rank()); end != ends_.end()) end->second.show(exit);
      break;
    }
    case Event::kStopRequested:
      seen_.stop_requested = true;
      if (!stop_written_) stop_written_ = BootTime(Duration(event.boot_ns()));
      if (stop_why_ == rundir::v1::StopRequested::WHY_UNSPECIFIED)
        stop_why_ = event.stop_requested().why();
      break;
    case Event::kAuxiliaryStarted:
      leaders_.push_back({.pid = static_cast<pid_t>(event.auxiliary_started().pid()),
                          .start_time = event.auxiliary_started().start_time()});
      break;
    case Event::kAuxiliaryExited: fold(event.auxiliary_exited(), event); break;
    case Event::kSetupStarted:
      leaders_.push_back({.pid = static_cast<pid_t>(event.setup_started().pid()),
                          .start_time = event.setup_started().start_time()});
      seen_.setting_up = true;
      break;
    case Event::kSetupEnded: seen_.setting_up = false; break;
    case Event::kSwept:
      seen_.swept = seen_.swept_by_worker = true;
      seen_.setting_up = false;
      seen_.swept_why = ended_because(stop_why_);
      seen_.swept_at = at;
      break;
    case Event::kScriptRankSeen: fold(event.script_rank_seen()); break;
    case Event::kScriptLaunched: {
      const auto& launched = event.script_launched();
      if (seen_.script_launch) break;
      seen_.script_launch = {.first_rank = launched.first_rank(),
                             .ranks = launched.ranks(),
                             .save = launched.save(),
                             .weights_alone = launched.weights_alone(),
                             .at = at};
      break;
    }
    case Event::WHAT_NOT_SET: break;  // written by a newer worker
  }
}

// An end that broke the attempt is added only when the evidence of its log is known, so that the
// same directory gives the same facts.
void RunView::fold(const rundir::v1::AuxiliaryExited& exited, const Event& event) {
  AuxiliaryExitSeen exit{.name = exited.name(),
                         .code = exited.code(),
                         .signal = exited.signal(),
                         .stop_requested = exited.stop_requested(),
                         .at = rundir::wall_time(event),
                         .boot = BootTime(Duration(event.boot_ns()))};
  const bool bad = !exit.stop_requested && (exit.code != 0 || exit.signal != 0);
  const auto known = auxiliary_evidence_.find(exit.name);
  if (bad && known == auxiliary_evidence_.end()) {
    auxiliaries_waiting_.push_back(std::move(exit));
    return;
  }
  if (known != auxiliary_evidence_.end()) exit.evidence = known->second;
  seen_.auxiliary_exits.push_back(std::move(exit));
}

// Each file is one log, however many processes write it. In a container a path names a mounted
// file, or a file of the container itself. The latter is reached through the worker as long as the
// worker lives.
void RunView::fold(const rundir::v1::ScriptRankSeen& rank) {
  std::string path = rank.log();
  std::vector<ScriptLogSeen>& logs = seen_.script_logs;
  if (!path.starts_with('/') || path.find('\0') != std::string::npos ||
      logs.size() >= kScriptLogsMost)
    return;
  bool inside = launch_ && launch_->has_container();
  std::string mount;
  if (inside) {
    if (auto on_node = mounted_from(launch_->container(), path)) {
      path = on_node->source + on_node->rest;
      mount = std::move(on_node->source);
      inside = false;
    } else if (!claim_ || claim_->boot_id() != own_boot_.str()) {
      return;
    }
  }
  const auto same = [&](const ScriptLogSeen& log) {
    return log.path == path && (log.root_pid != 0) == inside;
  };
  if (std::ranges::any_of(logs, same)) return;
  const auto before = std::ranges::count(logs, rank.rank(), &ScriptLogSeen::rank);
  const std::string name = "rank-" + std::to_string(rank.rank());
  ScriptLogSeen& log = logs.emplace_back();
  log = {.name = before == 0 ? name : name + "-" + std::to_string(before + 1),
         .rank = rank.rank(),
         .pid = rank.pid(),
         .start_time = rank.start_time(),
         .path = std::move(path),
         .mount = std::move(mount),
         .root_pid = inside ? claim_->pid() : 0,
         .root_start_time = inside ? claim_->start_time() : 0,
         .user = std::nullopt};
  if (launch_ && launch_->set_user())
    log.user = {.uid = launch_->uid(),
                .gid = launch_->gid(),
                .groups = {launch_->groups().begin(), launch_->groups().end()}};
}

JobReach RunView::reach() const {
  JobReach reach;
  if (!launch_) return reach;
  if (launch_->set_user())
    reach.user = {.name = {},
                  .home = {},
                  .uid = launch_->uid(),
                  .gid = launch_->gid(),
                  .groups = {launch_->groups().begin(), launch_->groups().end()}};
  reach.container = launch_->has_container();
  if (!reach.container) return reach;
  // Of an older agent's record: those that are no links. This thread looks up nothing.
  const auto& roots = launch_->container().mount_roots();
  reach.mounts = roots.empty() ? mount_sources(launch_->container())
                               : std::vector<std::string>(roots.begin(), roots.end());
  return reach;
}

std::vector<std::string> RunView::auxiliaries_without_evidence() const {
  std::vector<std::string> names;
  for (const AuxiliaryExitSeen& exit : auxiliaries_waiting_) names.push_back(exit.name);
  return names;
}

void RunView::give_auxiliary_evidence(const std::string& name, const std::string& evidence) {
  auxiliary_evidence_.emplace(name, evidence);
  const auto rest = std::ranges::stable_partition(
      auxiliaries_waiting_, [&](const AuxiliaryExitSeen& exit) { return exit.name != name; });
  for (AuxiliaryExitSeen& exit : rest) {
    exit.evidence = auxiliary_evidence_.at(name);
    seen_.auxiliary_exits.push_back(std::move(exit));
  }
  auxiliaries_waiting_.erase(rest.begin(), rest.end());
}

// A power loss destroyed the launch record of a run whose ranks had begun. The controller may
// already have its exits, and then waits for its logs. These are the logs of the ranks that left a
// trace and of all ranks between them, because the ranks of a node are consecutive.
void RunView::trace_ranks() {
  std::set<std::uint32_t> ranks;
  std::set<std::string> auxiliaries;
  for (const auto& [rank, pid] : seen_.pids) ranks.insert(rank);
  for (const auto& [rank, exit] : seen_.exits) ranks.insert(rank);
  std::error_code error;
  LogsDir logs(layout_.logs());
  const std::filesystem::path opened = logs.path_of("").value_or(std::filesystem::path());
  for (std::filesystem::directory_iterator at(opened, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (const auto rank = rundir::rank_of_log(name)) ranks.insert(*rank);
    if (auto log_name = rundir::name_of_node_log(name);
        log_name && auxiliaries.size() < kAuxiliariesMost)
      auxiliaries.insert(std::move(*log_name));
  }
  if (ranks.empty() || *ranks.rbegin() - *ranks.begin() >= kRanksMost) return;
  seen_.ranks.resize(*ranks.rbegin() - *ranks.begin() + 1);
  std::iota(seen_.ranks.begin(), seen_.ranks.end(), *ranks.begin());
  order_.Clear();
  order_.mutable_watching()->set_grammar("none");
  order_.mutable_watching()->set_layout("none");
  if (auxiliaries.erase(rundir::kSetupLog) > 0) order_.mutable_setup();
  for (const std::string& name : auxiliaries) order_.add_auxiliaries()->set_name(name);
  ranks_traced_ = true;
}

void RunView::fold(const Mark& mark) {
  const WallTime at = rundir::wall_time(mark);
  const auto end_of = [this](std::uint32_t rank) -> RankMarks& { return ends_[rank]; };
  switch (mark.what_case()) {
    case Mark::kRefused:
      seen_.refused = {static_cast<v1::StartFailure>(mark.refused().why()), mark.refused().text()};
      (void)seen_.refused_for.ParseFromString(mark.refused().checkpoint());
      seen_.refused_step = mark.refused().step();
      seen_.refused_at = at;
      break;
    case Mark::kSwept:
      if (seen_.swept) break;  // the worker's last event came first
      seen_.swept = true;
      seen_.setting_up = false;
      seen_.swept_why = static_cast<v1::SweptWhy>(mark.swept().why());
      seen_.swept_at = at;
      break;
    case Mark::kFirstStep:
      if (seen_.first_step) break;
      seen_.first_step = mark.first_step().step();
      seen_.first_step_at = at;
      break;
    case Mark::kClockSkewed:
      if (seen_.clock_ahead) break;
      seen_.clock_ahead = Duration(mark.clock_skewed().ahead_ns());
      seen_.clock_ahead_at = at;
      break;
    case Mark::kOutputsUploaded: {
      RunSeen::Outputs ended{.files = mark.outputs_uploaded().files(),
                             .bytes = mark.outputs_uploaded().bytes(),
                             .problem = mark.outputs_uploaded().problem(),
                             .seal = mark.outputs_uploaded().seal(),
                             .sums_sha256 = mark.outputs_uploaded().sums_sha256(),
                             .logs = mark.outputs_uploaded().logs(),
                             .removed = {},
                             .not_removed = mark.outputs_uploaded().not_removed(),
                             .at = at};
      if (mark.outputs_uploaded().has_step()) ended.step = mark.outputs_uploaded().step();
      for (const auto& one : mark.outputs_uploaded().removed())
        ended.removed.push_back({.attempt = one.attempt(), .step = one.step()});
      seen_.note_outputs(ended);
      break;
    }
    case Mark::kSuccessSeen: {
      const std::uint32_t rank = mark.success_seen().rank();
      end_of(rank).success_seen = true;
      if (const auto exit = seen_.exits.find(rank); exit != seen_.exits.end())
        exit->second.success_seen = true;
      break;
    }
    case Mark::kEvidence: {
      const std::string& line = mark.evidence().line();
      if (mark.evidence().has_auxiliary()) {
        give_auxiliary_evidence(mark.evidence().auxiliary(), line);
        break;
      }
      const std::uint32_t rank = mark.evidence().rank();
      RankMarks& end = end_of(rank);
      end.evidence = line;
      end.kind = static_cast<v1::EvidenceKind>(mark.evidence().kind());
      if (mark.evidence().has_step()) end.step = mark.evidence().step();
      if (mark.evidence().has_total()) end.total = mark.evidence().total();
      if (const auto exit = seen_.exits.find(rank); exit != seen_.exits.end())
        end.show(exit->second);
      break;
    }
    case Mark::WHAT_NOT_SET: break;
  }
}

}  // namespace muster::agent
