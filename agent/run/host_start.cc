// The starts of Host: from an order, or a refusal, until a worker has claimed the run or the run is
// refused. A crash may interrupt each function at any line: the next incarnation sees how far it
// came.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdlib>

#include "agent/run/host_impl.h"
#include "common/io/room.h"
#include "common/process/cgroup.h"
#include "common/process/spawn.h"
#include "common/rundir/run_file.h"

namespace muster::agent {
namespace {

// Another node has found the checkpoint torn, and the job is stopped for that. This node is still
// reading it. Its result is the second report, which quarantines the checkpoint.
constexpr Duration kReadPatience = std::chrono::seconds(2);

// A step without progress of its own that takes longer says what it does, and for how long.
constexpr Duration kStepIsSlow = std::chrono::seconds(3);

// For a step that has nothing to do with the job: every error is the node's, or its disk's.
Error of_node(Error error) {
  if (error.code != ErrorCode::ResourceExhausted) error.code = ErrorCode::Io;
  return error;
}

}  // namespace

StartNews Host::start_news(const RunKey& run) const {
  const Entry* entry = impl_->find(run);
  if (entry == nullptr || !entry->starting || !entry->starting->progress) return {};
  StartProgress::Now now = entry->starting->progress->now();
  if (!now.step) return {};
  const Duration at_it = impl_->options.clock->now().boot - now.since;
  if (now.text.empty() && at_it >= kStepIsSlow)
    now.text = fmt::format("{}, for {} s", now.sentence, at_it / std::chrono::seconds(1));
  return {.step = std::string(row_of(*now.step).word), .text = std::move(now.text)};
}

// Until the worker is spawned, the run looks like one whose worker was spawned and has not claimed
// it yet. A stop then claims it first.
void Host::Impl::act(const StartRun& start) {
  if (find(start.run) != nullptr) return;
  const rundir::RunLayout layout(options.layout.run(start.run.first, start.run.second));
  auto made = rundir::make_run(layout);
  Entry& entry = add(start.run);
  entry.starting.emplace(Starting{
      .stage = start.launch.has_resume() ? Starting::Stage::Reading : Starting::Stage::Preparing,
      .sets_up = start.launch.has_container() || start.launch.fetches_size() > 0 ||
                 start.launch.staged_size() > 0,
      .grace = start.launch.orphan_grace()});
  if (!made) {
    const Error error = of_node(std::move(made).error().in("making the run directory"));
    const bool full = error.code == ErrorCode::ResourceExhausted;
    return refuse(start.run, entry,
                  {.why = failure_of(error),
                   .text = error.message + (full ? io::inodes_text(layout.root()) : "")});
  }
  entry.view.set_spawned(true);
  refresh(start.run, entry, true);
  if (!entry.starting) return;  // somebody has claimed the directory
  StartWork work{.order = start.launch,
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
                 .fetch = options.fetch,
                 .fetch_secrets = options.fetch_secrets,
                 .fill_facts = options.fill_facts};
  // A container's processes are in the container's own groups. The worker in the container could
  // not write to a group of this agent.
  if (options.cgroup_base && !start.launch.has_container())
    work.context.cgroup = (*options.cgroup_base / name_of(start.run)).string();
  work.spawn = [this, run = start.run](StartWork& prepared) { return step_spawn(run, prepared); };
  entry.starting->progress = work.progress;
  starts.run(std::move(work),
             {.begun = [this, run = start.run](StartStep step) { step_begun(run, step); },
              .ended = [this, run = start.run](
                           StepResult result) { start_ended(run, std::move(result)); }});
}

// Null: the start was refused meanwhile, and is abandoned.
Host::Entry* Host::Impl::find_starting(const RunKey& run) const {
  loop.assert_on();
  Entry* entry = find(run);
  if (closed || entry == nullptr || !entry->starting) return nullptr;
  return entry->seen.worker == WorkerState::Spawned ? entry : nullptr;
}

void Host::Impl::step_begun(const RunKey& run, StartStep step) {
  Entry* entry = find_starting(run);
  if (entry == nullptr) return;
  if (step > StartStep::Links) entry->starting->stop_reading();
  if (!row_of(step).takes_long) return;
  entry->starting->sets_up = true;
  overlay(*entry);
  tell(run, *entry);
}

StepResult Host::Impl::step_spawn(const RunKey& run, StartWork& work) {
  Entry* entry = find_starting(run);
  if (entry == nullptr || entry->starting->stop_timer) return std::unexpected(Refusal{});
  if (auto spawned = spawn(run, *entry, work.launch, work.secrets); !spawned)
    return std::unexpected(refusal_of(spawned.error()));
  return {};
}

void Host::Impl::start_ended(const RunKey& run, StepResult result) {
  Entry* entry = find_starting(run);
  if (entry == nullptr) return;
  Starting& starting = *entry->starting;
  starting.sets_up = false;
  starting.stop_reading();
  if (result) return refresh(run, *entry, true);
  if (starting.stop_timer && result.error().why != v1::START_FAILURE_CHECKPOINT)
    result.error() = {.why = v1::START_FAILURE_UNSPECIFIED,
                      .text = "asked to stop before it was started"};
  refuse(run, *entry, result.error());
}

void Host::Impl::end_start(Entry& entry) {
  if (!entry.starting) return;
  if (entry.starting->progress) starts.abandon(*entry.starting->progress);
  entry.starting.reset();
}

Result<void> Host::Impl::spawn(const RunKey& run, Entry& entry, const rundir::v1::Launch& launch,
                               const io::UniqueFd& secrets) {
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

  const io::UniqueFd log =
      rundir::open_file(layout.worker_log(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!log)
    return fail(of_node(
        fail_errno(fmt::format("opening '{}'", layout.worker_log().string()), errno).error()));
  process::SpawnRequest request{
      .path = options.worker.string(),
      .argv = {options.worker.string(), layout.root().string()},
      .env = {fmt::format("{}={}", rundir::kProcessTagVariable, launch.process_tag()),
              "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
      .cwd = "/",
      .out_fd = log.get(),
      .new_session = true};
  if (const char* offset = std::getenv(kWallClockOffsetVariable); offset != nullptr)
    request.env.push_back(fmt::format("{}={}", kWallClockOffsetVariable, offset));
  if (secrets) request.in_fd = secrets.get();
  if (launch.has_container()) go_by_container(request, launch.container());
  auto pid = process::spawn(request);
  if (!pid) return fail(of_node(std::move(pid).error().in("starting the worker")));
  entry.starting->stage = Starting::Stage::Spawned;
  if (auto followed = entry.worker.spawned(*pid); !followed) {
    // The worker runs, and the wake FIFO still reports its claim. After the claim a pidfd reports
    // its end. So this is no reason to refuse a run that is starting.
    trouble(fmt::format("watching the worker of '{}': {}", name_of(run), followed.error().message));
  }
  return {};
}

void Host::Impl::act(const RefuseRun& wanted) {
  Entry* entry = find(wanted.run);
  if (entry == nullptr) {
    const rundir::RunLayout layout(options.layout.run(wanted.run.first, wanted.run.second));
    auto made = rundir::make_run(layout);
    entry = &add(wanted.run);
    entry->starting.emplace();
    if (!made)
      trouble(fmt::format("refusing run '{}': {}", name_of(wanted.run), made.error().message));
  }
  if (entry->seen.refused) return;
  if (entry->starting && entry->starting->stage == Starting::Stage::Reading &&
      wanted.why == v1::START_FAILURE_UNSPECIFIED) {
    auto& timer = entry->starting->stop_timer;
    if (timer) return;
    timer = std::make_unique<async::Timer>(loop, "stop of a start");
    return timer->arm(kReadPatience, [this, wanted] {
      if (Entry* late = find_starting(wanted.run)) late->starting->stop_reading();
      act(wanted);
    });
  }
  refuse(wanted.run, *entry, {.why = wanted.why, .text = wanted.text});
}

// Claims the run, then records why. If a worker has the claim, it is adopted instead.
void Host::Impl::refuse(const RunKey& run, Entry& entry, const Refusal& refusal) {
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
    const bool nothing_spawned =
        entry.starting && entry.starting->stage != Starting::Stage::Spawned;
    if (!nothing_spawned && !removed(entry.view.layout().root())) return;
  }
  rundir::v1::Mark mark = new_mark();
  mark.mutable_refused()->set_why(static_cast<std::uint32_t>(refusal.why));
  mark.mutable_refused()->set_text(refusal.text);
  mark.mutable_refused()->set_checkpoint(refusal.checkpoint.SerializeAsString());
  mark.mutable_refused()->set_step(refusal.step);
  if (claimed && remember(run, entry, {mark})) return;
  entry.unwritten.refused = {.why = refusal.why,
                             .text = refusal.text,
                             .checkpoint = refusal.checkpoint,
                             .step = refusal.step,
                             .at = options.clock->now().wall};
  end_start(entry);
  overlay(entry);
  tell(run, entry);
}

}  // namespace muster::agent
