// Carries out what reconcile() requests, on disk and on processes. A crash may interrupt each
// action at any line: the next start sees how far it came.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/run/host_impl.h"
#include "agent/run/state_dir.h"
#include "common/io/file.h"
#include "common/io/room.h"
#include "common/process/cgroup.h"
#include "common/process/spawn.h"

namespace muster::agent {
namespace {

// Another node has found the checkpoint torn, and the job is stopped for that. This node is still
// reading it. Its result is the second report, which quarantines the checkpoint.
constexpr Duration kReadPatience = std::chrono::seconds(2);

std::string name_of(const RunKey& run) {
  return fmt::format("{}.{}", run.first.str(), run.second.value);
}

// For a step that has nothing to do with the job: every error is the node's, or its disk's.
Error of_node(Error error) {
  if (error.code != ErrorCode::ResourceExhausted) error.code = ErrorCode::Io;
  return error;
}

}  // namespace

// Until the start is prepared, the run looks like one whose worker was spawned and has not claimed
// it yet. A stop then claims it first.
void Host::Impl::act(const StartRun& start) {
  if (find(start.run) != nullptr) return;
  const rundir::RunLayout layout(options.layout.run(start.run.first, start.run.second));
  auto made = rundir::make_run(layout);
  Entry& entry = add(start.run);
  entry.grace_at_start = start.launch.orphan_grace();
  entry.fresh = true;
  if (!made) {
    const Error error = of_node(std::move(made).error().in("making the run directory"));
    const bool full = error.code == ErrorCode::ResourceExhausted;
    return refuse(start.run, entry, failure_of(error),
                  error.message + (full ? io::inodes_text(layout.root()) : ""));
  }
  entry.view.set_spawned(true);
  entry.fetching_image = start.launch.has_container() || start.launch.fetches_size() > 0;
  entry.reads_checkpoint = start.launch.has_resume();
  refresh(start.run, entry, true);
  StartRequest request{
      .order = start.launch,
      .node = {.devices = options.devices,
               .state_dir = options.layout.root(),
               .min_free_bytes = options.min_free_bytes,
               .numa_nodes = options.numa_nodes},
      .layout = layout,
      .context = {.run = start.run,
                  .node = options.node,
                  .boot = options.self.boot_id,
                  .process_tag = rundir::process_tag(options.cluster, start.run.first,
                                                     start.run.second, options.node),
                  .path = options.path,
                  .worker = options.worker},
      .container = options.container,
      .image = {.turns = image_turns},
      .fetch = options.fetch};
  entry.image_news = request.image.news;
  // A container's processes are in the container's own groups. The worker in the container could
  // not write to a group of this agent.
  if (options.cgroup_base && !start.launch.has_container())
    request.context.cgroup = (*options.cgroup_base / name_of(start.run)).string();
  start_threads.run(
      [prepare = options.prepare, request = std::move(request)]() mutable {
        return prepare(std::move(request));
      },
      [this, run = start.run](StartPrepared outcome) { prepared(run, std::move(outcome)); });
}

void Host::Impl::prepared(const RunKey& run, StartPrepared outcome) {
  Entry* entry = find(run);
  if (entry != nullptr) {
    entry->fetching_image = false;
    entry->image_news.reset();
    entry->reads_checkpoint = false;
  }
  // stopped meanwhile
  if (closed || entry == nullptr || entry->seen.worker != WorkerState::Spawned) return;
  if (entry->stop_timer && (outcome || outcome.error().why != v1::START_FAILURE_CHECKPOINT))
    return refuse(run, *entry, v1::START_FAILURE_UNSPECIFIED,
                  "asked to stop before it was started");
  if (!outcome)
    return refuse(run, *entry, outcome.error().why, outcome.error().text,
                  outcome.error().checkpoint);
  if (auto spawned = spawn(run, *entry, *outcome); !spawned)
    return refuse(run, *entry, failure_of(spawned.error()), spawned.error().message);
  refresh(run, *entry, true);
}

Result<void> Host::Impl::spawn(const RunKey& run, Entry& entry, const rundir::v1::Launch& launch) {
  const rundir::RunLayout& layout = entry.view.layout();
  // The lease comes first: a worker without a lease considers itself orphaned.
  if (!renew_lease(entry, true))
    return fail(ErrorCode::Io, "writing the lease of the run directory");
  if (auto written = rundir::write_launch(layout, launch); !written)
    return fail(of_node(std::move(written).error()));
  // The group is made here and not by the worker, because the end of another run may be removing
  // the base. If this fails, the worker reports it and continues.
  if (!launch.cgroup().empty() && process::make_run_group(launch.cgroup()))
    own_base(std::filesystem::path(launch.cgroup()).parent_path(), options.layout);

  process::SpawnRequest request{
      .path = options.worker.string(),
      .argv = {options.worker.string(), layout.root().string()},
      .env = {fmt::format("{}={}", rundir::kProcessTagVariable, launch.process_tag()),
              "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
      .cwd = "/",
      .standard_out = {.path = layout.worker_log().string(),
                       .flags = O_WRONLY | O_CREAT | O_APPEND,
                       .mode = 0600},
      .new_session = true};
  if (launch.has_container()) go_by_container(request, launch.container());
  auto pid = process::spawn(request);
  if (!pid) return fail(of_node(std::move(pid).error().in("starting the worker")));
  entry.child = *pid;
  entry.fresh = false;
  auto child = process::Pidfd::open_child(*pid);
  if (!child) {
    // The worker runs, and the wake FIFO still reports its claim. After the claim a pidfd reports
    // its end. So this is no reason to refuse a run that is starting.
    trouble(fmt::format("watching the worker of '{}': {}", name_of(run), child.error().message));
    return {};
  }
  entry.child_fd = std::move(*child);
  entry.child_ready = std::make_unique<async::Readable>(loop, "child ended", entry.child_fd->fd(),
                                                        [this, run] { child_ended(run); });
  return {};
}

void Host::Impl::act(const RefuseRun& wanted) {
  Entry* entry = find(wanted.run);
  if (entry == nullptr) {
    const rundir::RunLayout layout(options.layout.run(wanted.run.first, wanted.run.second));
    auto made = rundir::make_run(layout);
    entry = &add(wanted.run);
    entry->fresh = true;
    if (!made)
      trouble(fmt::format("refusing run '{}': {}", name_of(wanted.run), made.error().message));
  }
  if (entry->seen.refused) return;
  if (entry->reads_checkpoint && wanted.why == v1::START_FAILURE_UNSPECIFIED) {
    if (entry->stop_timer) return;
    entry->stop_timer = std::make_unique<async::Timer>(loop, "stop of a start");
    return entry->stop_timer->arm(kReadPatience, [this, wanted] {
      if (Entry* late = find(wanted.run)) late->reads_checkpoint = false;
      act(wanted);
    });
  }
  refuse(wanted.run, *entry, wanted.why, wanted.text);
}

// Claims the run, then records why. If a worker has the claim, it is adopted instead.
void Host::Impl::refuse(const RunKey& run, Entry& entry, v1::StartFailure why,
                        const std::string& text, const v1::CheckpointReading& checkpoint) {
  rundir::v1::Claim claim;
  claim.set_boot_id(options.self.boot_id.str());
  auto claimed = rundir::write_claim(entry.view.layout(), claim);
  if (claimed && !*claimed) {
    auto holder = rundir::read_claim(entry.view.layout());
    if (!holder || !*holder || (*holder)->pid() != 0) {
      refresh(run, entry, true);
      return;
    }
  }
  if (!claimed) {
    trouble(fmt::format("refusing run '{}': {}", name_of(run), claimed.error().message));
    // A worker may still be about to claim the run. Only a claim on disk decides that, so
    // reconcile() requests the refusal again later. Without the directory there is nothing to
    // claim.
    if (!entry.fresh && !removed(entry.view.layout().root())) return;
  }
  rundir::v1::Mark mark = new_mark();
  mark.mutable_refused()->set_why(static_cast<std::uint32_t>(why));
  mark.mutable_refused()->set_text(text);
  mark.mutable_refused()->set_checkpoint(checkpoint.SerializeAsString());
  if (claimed && remember(run, entry, {mark})) return;
  entry.refused_in_memory = {why, text};
  entry.refused_for_in_memory = checkpoint;
  entry.in_memory_at = options.clock->now().wall;
  overlay(entry);
  if (callbacks.changed) callbacks.changed(run);
}

void Host::Impl::act(const SignalStop& stop) {
  Entry* entry = find(stop.run);
  if (entry == nullptr || entry->stop_signalled || entry->view.worker() == nullptr) return;
  auto sent = entry->view.worker()->signal(SIGTERM);
  if (!sent) {
    if (sent.error().code != ErrorCode::NotFound)
      trouble(fmt::format("stopping run '{}': {}", name_of(stop.run), sent.error().message));
    refresh(stop.run, *entry, true);
    return;
  }
  entry->stop_signalled = options.clock->now().boot;
  expect_obedience(stop.run, *entry);
}

std::string Host::Impl::process_tag_of(const RunKey& run, const Entry& entry) const {
  if (entry.view.launch() != nullptr && !entry.view.launch()->process_tag().empty())
    return entry.view.launch()->process_tag();
  return rundir::process_tag(options.cluster, run.first, run.second, options.node);
}

// Returns the group's path; empty: the run has none. There may be no launch record: the state
// directory was restored from an older copy, or newly made. Then this is the group that a run of
// this name would have had here, or had with an earlier instance. A base belongs to one instance
// only.
std::string Host::Impl::group_of(const RunKey& run, const Entry& entry) const {
  if (entry.view.launch() != nullptr) return entry.view.launch()->cgroup();
  if (!options.cgroup_base) return {};
  const std::filesystem::path own = *options.cgroup_base / name_of(run);
  if (::access(own.c_str(), F_OK) == 0) return own.string();
  for (const std::filesystem::path& base :
       earlier_bases(*options.cgroup_base, options.layout, options.self.instance)) {
    if (::access((base / name_of(run)).c_str(), F_OK) == 0) return (base / name_of(run)).string();
  }
  return own.string();
}

void Host::Impl::act(const SweepRun& wanted) {
  Entry* entry = find(wanted.run);
  if (entry == nullptr || entry->sweep || entry->group_waited || entry->removal ||
      entry->seen.swept)
    return;
  entry->sweep_why = wanted.why;
  begin_sweep(wanted.run, *entry);
}

// On an error nothing of the sweep stays, and reconcile() requests it again later.
void Host::Impl::begin_sweep(const RunKey& run, Entry& entry) {
  const std::uint64_t since = entry.view.claimed_since();
  std::optional<process::Family> family;
  // With a group no process must be guessed.
  if (const auto* launch = entry.view.launch();
      launch != nullptr &&
      (launch->cgroup().empty() || ::access(launch->cgroup().c_str(), F_OK) != 0)) {
    family = process::Family{.leaders = {entry.view.leaders().begin(), entry.view.leaders().end()},
                             .since = since};
    if (launch->set_user()) family->user = launch->uid();
  }
  auto sweep = process::ProcessTagSweep::start(
      rundir::kProcessTagVariable, process_tag_of(run, entry), since, std::move(family));
  if (!sweep)
    return trouble(fmt::format("sweeping run '{}': {}", name_of(run), sweep.error().message));
  entry.sweep = std::move(*sweep);
  entry.sweep_ready = std::make_unique<async::Readable>(loop, "sweep", entry.sweep->fd(),
                                                        [this, run] { step_sweep(run); });
  step_sweep(run);
}

void Host::Impl::step_sweep(const RunKey& run) {
  Entry* entry = find(run);
  if (entry == nullptr || !entry->sweep) return;
  // The group comes first: it also has the processes that have emptied their environment.
  std::optional<process::Cgroup> group;
  struct stat info{};
  const std::string path = group_of(run, *entry);
  if (!path.empty() && ::stat(path.c_str(), &info) == 0) {
    if (auto opened = process::Cgroup::make(path)) group = std::move(*opened);
  }
  if (group) {
    if (auto killed = group->kill(); !killed)
      trouble(fmt::format("sweeping run '{}': {}", name_of(run), killed.error().message));
  }
  auto progress = entry->sweep->step();
  if (!progress) {
    trouble(fmt::format("sweeping run '{}': {}", name_of(run), progress.error().message));
    entry->sweep_ready.reset();
    entry->sweep.reset();
    return;  // requested again later
  }
  tell_what_blocks(run, *entry);
  if (*progress != process::ProcessTagSweep::Progress::Done) return;
  if (group) {
    auto empty = group->empty();
    if (empty && !*empty) return wait_for_group(run, *entry, std::move(*group));
  }
  entry->sweep_ready.reset();
  entry->sweep.reset();
  if (begin_removal(run, *entry)) return;
  mark_swept(run, *entry, entry->sweep_why);
}

void Host::Impl::tell_what_blocks(const RunKey& run, Entry& entry) const {
  std::string pids;
  for (const pid_t pid : entry.sweep->waits_for())
    pids += fmt::format("{}{}", pids.empty() ? "" : ", ", pid);
  if (pids.empty() || std::exchange(entry.blocked_logged, pids) == pids) return;
  trouble(
      fmt::format("sweeping run '{}': whether it has left process {} cannot be determined: of this "
                  "user, started after the run, and closed to us (not dumpable); the run is swept "
                  "when it has ended; kill it if it is the job's",
                  name_of(run), pids));
}

// Processes without the process tag die in the group shortly after the kill. The group's events
// file reports when the group is empty, but not when somebody has removed it.
void Host::Impl::wait_for_group(const RunKey& run, Entry& entry, process::Cgroup group) {
  const int fd = group.events_fd();
  entry.sweep_ready.reset();
  entry.sweep.reset();
  entry.group_waited = std::move(group);
  entry.sweep_ready = std::make_unique<async::Readable>(
      loop, "sweep", fd, [this, run] { group_changed(run); }, async::Readable::Ready::Priority);
  if (!entry.group_timer) entry.group_timer = std::make_unique<async::Timer>(loop, "check a group");
  entry.group_timer->arm(kScanInterval, [this, run] { check_group(run); });
}

void Host::Impl::group_changed(const RunKey& run) {
  Entry* waiting = find(run);
  if (waiting == nullptr || !waiting->group_waited) return;
  waiting->group_timer->cancel();
  waiting->sweep_ready.reset();
  waiting->group_waited.reset();
  begin_sweep(run, *waiting);
}

void Host::Impl::check_group(const RunKey& run) {
  const Entry* waiting = find(run);
  if (waiting == nullptr || !waiting->group_waited) return;
  if (waiting->group_waited->gone()) return group_changed(run);
  waiting->group_timer->arm(kScanInterval, [this, run] { check_group(run); });
}

void Host::Impl::act(const MarkSwept& mark) {
  Entry* entry = find(mark.run);
  if (entry == nullptr || entry->seen.swept) return;
  mark_swept(mark.run, *entry, mark.why);
}

void Host::Impl::mark_swept(const RunKey& run, Entry& entry, v1::SweptWhy why) {
  rundir::v1::Mark mark = new_mark();
  mark.mutable_swept()->set_why(why);
  remove_group(run, entry);
  if (remember(run, entry, {mark})) return;
  // A worker that cannot record an end ends itself, which is not its own fault.
  const int refused = write_error(options.layout);
  entry.swept_in_memory = why == v1::SWEPT_WHY_WORKER_DIED && (refused == EROFS || refused == EIO)
                              ? v1::SWEPT_WHY_DISK_REFUSED_WRITES
                              : why;
  entry.in_memory_at = options.clock->now().wall;
  overlay(entry);
  if (callbacks.changed) callbacks.changed(run);
}

void Host::Impl::act(const ForgetRun& forget) {
  Entry* entry = find(forget.run);
  if (entry == nullptr) return;
  // The rename comes first. A crash while gigabytes are being removed must not leave an incomplete
  // run directory that looks unclaimed.
  const std::filesystem::path from = entry->view.layout().root();
  const std::filesystem::path to = from.parent_path() / (kGonePrefix + from.filename().string());
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error && error != std::errc::no_such_file_or_directory)
    trouble(fmt::format("removing run '{}': {}", name_of(forget.run), error.message()));
  const RunKey run = forget.run;
  // The worker wrote its last event and may still be exiting. If its entry is removed before it is
  // reaped, a zombie stays.
  if (entry->child != 0 && entry->child_fd) leave(std::move(entries.at(run)));
  entries.erase(run);
  all_seen.erase(run);
  if (!error) dispose(to);
}

}  // namespace muster::agent
