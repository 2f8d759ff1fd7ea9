#include "agent/run/host.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/logs/auxiliary_log.h"
#include "agent/run/host_impl.h"
#include "agent/run/state_dir.h"
#include "agent/stage/input_tree.h"
#include "common/io/beneath.h"
#include "common/io/remove_tree.h"
#include "common/proto/proto_time.h"

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr Duration kDiskGivenUp = std::chrono::seconds(5);
// a process that hangs longer than this in its exit is found again at the next start
constexpr int kDiscardMs = 10'000;

}  // namespace

Host::Host(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Host::~Host() {
  if (impl_ && !impl_->closed) close();
}

Result<std::unique_ptr<Host>> Host::open(async::Loop& loop, HostOptions options,
                                         HostCallbacks callbacks) {
  auto impl = std::make_unique<Impl>(loop, std::move(options), std::move(callbacks));
  impl->remove_leftovers();
  auto found = rundir::list_runs(impl->options.layout);
  if (!found) return fail(std::move(found).error().in("reading the run directories"));
  for (const auto& run : *found) {
    const RunKey key{run.job, run.attempt};
    impl->refresh(key, impl->add(key), false);
  }
  impl->remove_stale_groups();
  impl->sweep_earlier_instances();
  return std::unique_ptr<Host>(new Host(std::move(impl)));
}

void Host::close() {
  impl_->loop.assert_on();
  if (impl_->closed) return;
  impl_->closed = true;
  impl_->starts.close();
  impl_->scan_timer.cancel();
  impl_->frozen_timer.cancel();
  impl_->report_timer.cancel();
  impl_->entries.clear();
  impl_->leaving.clear();
  impl_->disposal.stop();
}

void Host::set_cluster(const ClusterId& cluster) {
  impl_->loop.assert_on();
  impl_->options.cluster = cluster;
}

const std::map<RunKey, RunSeen>& Host::seen() const {
  impl_->loop.assert_on();
  return impl_->all_seen;
}

const RunSeen* Host::seen(const RunKey& run) const {
  impl_->loop.assert_on();
  const Entry* entry = impl_->find(run);
  return entry == nullptr ? nullptr : &entry->seen;
}

std::vector<v1::Fact> Host::facts(const RunKey& run) const {
  impl_->loop.assert_on();
  const Entry* entry = impl_->find(run);
  if (entry == nullptr) return {};
  std::vector<v1::Fact> facts = facts_of(run, entry->seen);
  for (v1::Fact& fact : facts) {
    if (!fact.has_exited()) continue;
    const std::uint32_t rank = fact.exited().rank();
    fact.mutable_exited()->set_success_unknown(
        entry->reporting.success_unknown(rank, entry->view.marked_end(rank)));
  }
  return facts;
}

fs::path Host::directory(const RunKey& run) const {
  return impl_->options.layout.run(run.first, run.second);
}

void Host::perform(const Action& action) {
  impl_->loop.assert_on();
  if (impl_->closed) return;
  std::visit([this](const auto& one) { impl_->act(one); }, action);
}

void Host::renew_leases(BootTime heard) {
  impl_->loop.assert_on();
  impl_->heard = std::max(impl_->heard, heard);
  for (auto& [run, entry] : impl_->entries) impl_->renew_lease(*entry, false);
}

std::optional<Duration> Host::lease_left(const RunKey& run, bool refused_only) const {
  impl_->loop.assert_on();
  const Entry* entry = impl_->find(run);
  if (entry == nullptr || !is_supervised(entry->phase()) || !entry->lease.until())
    return std::nullopt;
  if (refused_only && !entry->lease.refused()) return std::nullopt;
  return std::max(Duration::zero(), *entry->lease.until() - impl_->options.clock->now().boot);
}

void Host::note_first_step(const RunKey& run, std::int64_t step) {
  impl_->loop.assert_on();
  Entry* entry = impl_->find(run);
  if (entry == nullptr || entry->seen.first_step) return;
  auto mark = impl_->new_mark();
  mark.mutable_first_step()->set_step(step);
  impl_->remember(run, *entry, {mark});
}

void Host::note_clock_skew(Duration ahead) {
  impl_->loop.assert_on();
  for (auto& [run, entry] : impl_->entries) {
    if (!entry->seen.started || entry->seen.swept || entry->seen.clock_ahead) continue;
    auto mark = impl_->new_mark();
    mark.mutable_clock_skewed()->set_ahead_ns(ahead.count());
    // First in memory: it is written once, whether or not the disk takes it.
    entry->unwritten.clock_skew = {.ahead = ahead, .at = impl_->options.clock->now().wall};
    if (impl_->remember(run, *entry, {mark})) continue;
    impl_->overlay(*entry);
    impl_->tell(run, *entry);
  }
}

void Host::note_outputs(const RunKey& run, RunSeen::Outputs ended) {
  impl_->loop.assert_on();
  Entry* entry = impl_->find(run);
  if (entry == nullptr) return;
  auto mark = impl_->new_mark();
  mark.mutable_outputs_uploaded()->set_files(ended.files);
  mark.mutable_outputs_uploaded()->set_bytes(ended.bytes);
  mark.mutable_outputs_uploaded()->set_problem(ended.problem);
  if (ended.step) mark.mutable_outputs_uploaded()->set_step(*ended.step);
  mark.mutable_outputs_uploaded()->set_seal(ended.seal);
  mark.mutable_outputs_uploaded()->set_sums_sha256(ended.sums_sha256);
  mark.mutable_outputs_uploaded()->set_logs(ended.logs);
  for (const RunSeen::Removed& one : ended.removed) {
    auto& removed = *mark.mutable_outputs_uploaded()->add_removed();
    removed.set_attempt(one.attempt);
    removed.set_step(one.step);
  }
  mark.mutable_outputs_uploaded()->set_not_removed(ended.not_removed);
  if (impl_->remember(run, *entry, {mark})) return;
  ended.at = impl_->options.clock->now().wall;
  entry->unwritten.outputs.push_back(std::move(ended));
  impl_->overlay(*entry);
  impl_->tell(run, *entry);
}

const v1::NodeLaunch* Host::order(const RunKey& run) const {
  impl_->loop.assert_on();
  const Entry* entry = impl_->find(run);
  return entry == nullptr || !entry->seen.launch_sound ? nullptr : &entry->view.order();
}

void Host::note_rank_end(const RunKey& run, std::uint32_t rank, const std::string& evidence,
                         bool success_seen, v1::EvidenceKind kind, std::optional<std::int64_t> step,
                         std::optional<std::int64_t> total) {
  impl_->loop.assert_on();
  Entry* entry = impl_->find(run);
  if (entry == nullptr) return;
  entry->reporting.end_read(rank);
  if (entry->view.marked_end(rank)) return;
  std::vector<rundir::v1::Mark> marks;
  if (success_seen) {
    marks.push_back(impl_->new_mark());
    marks.back().mutable_success_seen()->set_rank(rank);
  }
  // An empty line is also recorded: it says that the log was read to its end.
  marks.push_back(impl_->new_mark());
  marks.back().mutable_evidence()->set_rank(rank);
  marks.back().mutable_evidence()->set_line(evidence);
  marks.back().mutable_evidence()->set_kind(static_cast<std::uint32_t>(kind));
  if (step) marks.back().mutable_evidence()->set_step(*step);
  if (total) marks.back().mutable_evidence()->set_total(*total);
  // First in memory: a mark that is stored may not be readable at once.
  entry->unwritten.ends[rank] = {.evidence = evidence,
                                 .kind = kind,
                                 .success_seen = success_seen,
                                 .step = step,
                                 .total = total};
  if (impl_->remember(run, *entry, marks) && entry->view.marked_end(rank)) return;
  impl_->overlay(*entry);
  impl_->tell(run, *entry);  // the fact must not wait
}

void Host::note_last_scan(const RunKey& run) {
  impl_->loop.assert_on();
  Entry* entry = impl_->find(run);
  if (entry == nullptr) return;
  entry->reporting.last_scan();
  impl_->tell(run, *entry);
}

bool Host::reportable(const RunKey& run, const v1::RankExited& exited) const {
  impl_->loop.assert_on();
  const Entry* entry = impl_->find(run);
  return entry == nullptr || exited.lost() ||
         entry->reporting.ready(exited.rank(), entry->view.marked_end(exited.rank()),
                                impl_->options.clock->now().boot);
}

bool Host::scanned(const RunKey& run) const {
  impl_->loop.assert_on();
  const Entry* entry = impl_->find(run);
  return entry == nullptr || entry->reporting.scanned(impl_->options.clock->now().boot);
}

bool Host::first_trimmed(const RunKey& run) {
  impl_->loop.assert_on();
  Entry* entry = impl_->find(run);
  return entry != nullptr && entry->reporting.trimmed();
}

// --- what the implementation shares --------------------------------------------------------------

Host::Entry* Host::Impl::find(const RunKey& run) const {
  loop.assert_on();
  const auto at = entries.find(run);
  return at == entries.end() ? nullptr : at->second.get();
}

Host::Entry& Host::Impl::add(const RunKey& run) {
  loop.assert_on();
  auto entry = std::make_unique<Entry>(
      loop, rundir::RunLayout(options.layout.run(run.first, run.second)), options.self.boot_id,
      all_seen[run],
      WorkerSupervision::Options{.margin = options.worker_margin, .clock = options.clock},
      WorkerSupervision::Callbacks{.child_ended = [this, run] { child_ended(run); },
                                   .worker_ended =
                                       [this, run] {
                                         if (Entry* one = find(run)) refresh(run, *one, true);
                                       },
                                   .overdue = [this, run] { judge_obedience(run); }});
  listen(run, *entry);
  return *(entries[run] = std::move(entry));
}

// Called before the first reading, so that no event is missed between the reading and the wake
// FIFO.
void Host::Impl::listen(const RunKey& run, Entry& entry) {
  entry.wake_fifo = rundir::WakeFifo::open(entry.view.layout());
  if (!entry.wake_fifo) return;
  entry.wake_fifo_ready =
      std::make_unique<async::Readable>(loop, "wake_fifo", entry.wake_fifo->fd(), [this, run] {
        Entry* rung = find(run);
        if (rung == nullptr) return;
        rung->wake_fifo->drain();
        refresh(run, *rung, true);
      });
}

// Refreshes runs without a wake FIFO, as long as something may change in them, and runs that could
// not be read.
void Host::Impl::scan() {
  loop.assert_on();
  scanning.ended();
  std::vector<RunKey> silent;
  for (const auto& [run, entry] : entries) {
    if (entry->unread_since || (!entry->wake_fifo && !entry->over())) silent.push_back(run);
  }
  for (const RunKey& run : silent) {
    if (Entry* entry = find(run)) refresh(run, *entry, true);
  }
}

void Host::Impl::refresh(const RunKey& run, Entry& entry, bool tell) {
  loop.assert_on();
  auto changed = entry.view.refresh();
  if (!changed) {
    unread(run, entry, changed.error());
    if (entry.seen.worker == WorkerState::Dead || !lost_with_its_disk(entry)) return;
    overlay(entry);
    if (tell) this->tell(run, entry);
    return;
  }
  if (const auto& unknown = entry.view.worker_unknown()) {
    unread(run, entry, *unknown);
  } else {
    entry.unread_since.reset();
  }
  note_auxiliary_ends(run, entry);
  const auto not_believed = entry.view.not_believed();
  for (std::size_t i = 0; i < not_believed.size(); ++i) {
    if (not_believed.at(i).empty() || !entry.not_believed.at(i).first()) continue;
    trouble(fmt::format("reading run '{}.{}': {}", run.first.str(), run.second.value,
                        not_believed.at(i)));
  }
  const bool damaged = entry.view.events_damaged() && entry.view.worker() != nullptr;
  if (damaged && entry.events_damage.first()) {
    trouble(
        fmt::format("reading run '{}.{}': its events file is damaged; what comes behind the damage "
                    "is lost, its ranks will be reported lost when its worker ends",
                    run.first.str(), run.second.value));
  }
  if (entry.view.launch() != nullptr && !entry.seen.swept && !entry.removal.reported() &&
      removed(entry.view.layout().root()) && entry.removal.first()) {
    trouble(
        fmt::format("reading run '{}.{}': its directory '{}' has been removed (by a cleaner of "
                    "temporary files?); until its worker ends no end of its ranks is seen, and "
                    "what is not with the controller is lost; cancel the job if it stands still",
                    run.first.str(), run.second.value, entry.view.layout().root().string()));
  }
  if (entry.view.seen().worker != WorkerState::Spawned) end_start(entry);
  overlay(entry);
  if (!entry.lease.until()) entry.lease.adopt(entry.view.layout(), options.self.boot_id);
  entry.worker.update(entry.view, entry.seen, entry.lease.until());
  if (entry.seen.worker == WorkerState::Alive) check_frozen_soon();
  if (entry.over()) {
    entry.wake_fifo_ready.reset();
    entry.wake_fifo.reset();
  } else if (!entry.wake_fifo) {
    if (no_wake_fifo.first()) {
      trouble(fmt::format(
          "listening to run '{}.{}': its directory has no wake FIFO (its file system has none, or "
          "somebody removed it); it is scanned every {} ms instead",
          run.first.str(), run.second.value,
          std::chrono::duration_cast<std::chrono::milliseconds>(kScanInterval).count()));
    }
    scan_soon();
  }
  if (tell ? *changed : entry.view.order_known()) report(run, entry);
  if (*changed && tell && callbacks.changed) callbacks.changed(run);
}

// The run is known in another way than by a change of its directory.
void Host::Impl::tell(const RunKey& run, Entry& entry) {
  report(run, entry);
  if (callbacks.changed) callbacks.changed(run);
}

void Host::Impl::report(const RunKey& run, Entry& entry) {
  loop.assert_on();
  if (options.watch == nullptr || closed) return;
  for (const std::string& text : entry.reporting.update(*options.watch, run, entry.view, entry.seen,
                                                        options.clock->now().boot))
    trouble(text);
  report_by(entry.reporting.due());
}

void Host::Impl::report_by(std::optional<BootTime> due) {
  loop.assert_on();
  if (!due || (report_at && *report_at <= *due)) return;
  report_at = due;
  report_timer.arm(*due - options.clock->now().boot, [this] { report_due(); });
}

// When the wait of a fact is over, that is a change of its run.
void Host::Impl::report_due() {
  loop.assert_on();
  report_at.reset();
  const BootTime now = options.clock->now().boot;
  std::vector<RunKey> over;
  for (const auto& [run, entry] : entries) {
    const auto due = entry->reporting.due();
    if (due && *due <= now) {
      over.push_back(run);
    } else {
      report_by(due);
    }
  }
  for (const RunKey& run : over) {
    if (Entry* entry = find(run)) tell(run, *entry);
  }
}

void Host::Impl::scan_soon() {
  loop.assert_on();
  if (scanning.want_one()) scan_timer.arm(kScanInterval, [this] { scan(); });
}

// Nothing is concluded from the error: the run is read again until that succeeds.
void Host::Impl::unread(const RunKey& run, Entry& entry, const Error& error) {
  if (!entry.unread_since) {
    entry.unread_since = options.clock->now().boot;
    trouble(fmt::format("reading run '{}.{}': {}; trying on", run.first.str(), run.second.value,
                        error.message));
  }
  scan_soon();
}

// The exception to unread(): the worker has ended, its last records cannot be read for a while, and
// nothing can be written either. Further waiting would be for a disk that does not come back.
bool Host::Impl::lost_with_its_disk(const Entry& entry) const {
  if (entry.view.seen().worker != WorkerState::Dead ||
      options.clock->now().boot - entry.unread_since.value_or(BootTime::max()) < kDiskGivenUp)
    return false;
  const int error = write_error(options.layout);
  return error == EIO || error == EROFS;
}

void Host::Impl::overlay(Entry& entry) {
  entry.seen = entry.view.seen();
  if (entry.starting && entry.starting->sets_up) entry.seen.setting_up = true;
  entry.unwritten.show(entry.seen, entry.worker.stop_signalled());
}

void Host::Impl::judge_obedience(const RunKey& run) {
  Entry* entry = find(run);
  if (entry == nullptr) return;
  // The worker's last event may have come. This arms the timer again if the worker has more time.
  refresh(run, *entry, true);
  if (entry->unread_since) return;  // nothing is concluded from what cannot be read
  const std::string why = entry->worker.judge(entry->view, entry->seen, entry->lease.until());
  if (!why.empty()) kill_worker(run, *entry, why);
}

void Host::Impl::check_frozen_soon() {
  loop.assert_on();
  if (checking_frozen.want_one())
    frozen_timer.arm(options.worker_margin, [this] { check_frozen(); });
}

void Host::Impl::check_frozen() {
  loop.assert_on();
  checking_frozen.ended();
  for (const auto& [run, entry] : entries) {
    const auto why = entry->worker.check_frozen(entry->view, entry->seen);
    if (!why) continue;
    check_frozen_soon();
    if (!why->empty()) kill_worker(run, *entry, *why);
  }
}

void Host::Impl::kill_worker(const RunKey& run, Entry& entry, std::string_view why) {
  trouble(
      fmt::format("supervising run '{}.{}': its worker, process {}, {}; it is killed, its ranks "
                  "with it (was it frozen by SIGSTOP?)",
                  run.first.str(), run.second.value, entry.seen.worker_pid, why));
  if (auto killed = entry.worker.kill(entry.view); !killed) {
    trouble(fmt::format("killing the worker of run '{}.{}': {}", run.first.str(), run.second.value,
                        killed.error().message));
  }
}

void Host::Impl::child_ended(const RunKey& run) {
  Entry* entry = find(run);
  if (entry == nullptr) return;
  // If the worker died before its claim, the run is unclaimed: nothing that this incarnation
  // spawned can claim it any more.
  entry->view.set_spawned(false);
  refresh(run, *entry, true);
  refuse_without_container(run, *entry);
}

void Host::Impl::leave(std::unique_ptr<Entry> entry) {
  loop.assert_on();
  Entry* one = entry.get();
  leaving.push_back(std::move(entry));
  one->worker.leave([this, one] {
    loop.assert_on();
    std::erase_if(leaving, [one](const auto& other) { return other.get() == one; });
  });
}

rundir::v1::Mark Host::Impl::new_mark() const {
  return rundir::stamped_mark({.now = options.clock->now(), .boot = options.self.boot_id});
}

// The evidence is known from here on, also if the disk refuses it, because the fact must not wait.
// Another incarnation would read the same in the log.
void Host::Impl::note_auxiliary_ends(const RunKey& run, Entry& entry) {
  std::vector<rundir::v1::Mark> marks;
  for (const std::string& name : entry.view.auxiliaries_without_evidence()) {
    const std::string evidence = evidence_of_log(entry.view.layout().auxiliary_log(name));
    marks.push_back(new_mark());
    marks.back().mutable_evidence()->set_auxiliary(name);
    marks.back().mutable_evidence()->set_line(evidence);
    entry.view.give_auxiliary_evidence(name, evidence);
  }
  if (!marks.empty()) remember(run, entry, marks);
}

// False: the disk refused it, or nobody could read it again. The caller keeps it in memory if that
// matters.
bool Host::Impl::remember(const RunKey& run, Entry& entry,
                          const std::vector<rundir::v1::Mark>& marks) {
  const auto failed = [&](const Error& error) {
    trouble(fmt::format("writing what is known of run '{}.{}': {}; kept in memory", run.first.str(),
                        run.second.value, error.message));
    return false;
  };
  if (entry.view.marks_damaged()) {
    if (entry.marks_damage.first()) {
      trouble(fmt::format(
          "writing what is known of run '{}.{}': its mark file is damaged; kept in memory",
          run.first.str(), run.second.value));
    }
    return false;
  }
  if (!entry.marks) {
    auto opened = rundir::MarkWriter::open(entry.view.layout().mark());
    if (!opened) return failed(opened.error());
    entry.marks = std::move(*opened);
  }
  if (auto appended = entry.marks->append(marks); !appended) return failed(appended.error());
  if (removed(entry.view.layout().mark()))
    return failed({.code = ErrorCode::NotFound, .message = "its mark file has been removed"});
  refresh(run, entry, true);
  if (entry.seen.swept) entry.marks.reset();  // swept is normally the last mark
  return true;
}

bool Host::Impl::renew_lease(Entry& entry, bool at_start) {
  loop.assert_on();
  if (!at_start &&
      (entry.seen.swept || !entry.seen.launch_sound || entry.seen.worker == WorkerState::Never))
    return true;
  const auto& grace = at_start ? entry.starting->grace : entry.view.order().orphan_grace();
  auto renewed = entry.lease.renew(entry.view.layout(), options.self.boot_id, heard,
                                   to_duration(grace), at_start);
  if (renewed) return true;
  if (entry.lease.first_refusal()) {
    trouble(
        fmt::format("renewing the orphan grace of '{}': {}; trying on, its ranks are stopped "
                    "when it runs out",
                    entry.view.layout().root().string(), renewed.error().message));
  }
  return false;
}

void Host::Impl::remove_leftovers() {
  std::error_code error;
  for (fs::directory_iterator at(options.layout.runs(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kGonePrefix)) dispose(name);
  }
}

// Groups of runs that are over, or whose directory is gone. They remain if a worker or an agent was
// killed at its last step. A group with processes in it stays.
void Host::Impl::remove_stale_groups() {
  if (!options.cgroup_base) return;
  std::error_code ignored;
  for (const auto& at : fs::directory_iterator(*options.cgroup_base, ignored)) {
    const auto run = rundir::AgentLayout::parse_run_name(at.path().filename().string());
    if (!run) continue;
    const Entry* entry = find(*run);
    if (entry == nullptr || entry->over()) (void)process::remove_run_group(at.path());
  }
  // not empty: runs of another incarnation continue
  if (::rmdir(options.cgroup_base->c_str()) != 0 && errno != ENOENT)
    own_base(*options.cgroup_base, options.layout);
}

// Nobody knows what ran there any more. A process that has removed its process tag is found only by
// its group. The sweep takes a moment, and occupies no run here.
void Host::Impl::sweep_earlier_instances() {
  if (!options.cgroup_base) return;
  for (const fs::path& base :
       earlier_bases(*options.cgroup_base, options.layout, options.self.instance)) {
    trouble(fmt::format(
        "ending what an earlier instance of an agent has left in '{}': its state directory is gone",
        base.string()));
    disposal.post("sweep an earlier instance", [base] {
      std::error_code ignored;
      for (const auto& group : fs::directory_iterator(base, ignored)) {
        if (group.is_directory(ignored)) (void)process::discard_run_group(group.path(), kDiscardMs);
      }
      ::rmdir(base.c_str());
    });
  }
}

void Host::Impl::remove_group(const RunKey& run, const Entry& entry) {
  const std::string path = group_of(run, entry);
  if (path.empty()) return;
  if (auto removed = process::remove_run_group(path); !removed) {
    trouble(fmt::format("sweeping run '{}.{}': {}", run.first.str(), run.second.value,
                        removed.error().message));
  }
}

// True only if the file certainly does not exist; another error proves nothing.
bool Host::Impl::removed(const fs::path& path) {
  struct stat there{};
  return ::lstat(path.c_str(), &there) != 0 && errno == ENOENT;
}

// `name` is in the directory of the runs. What stays is found again at the next start.
void Host::Impl::dispose(const std::string& name) {
  // ".gone-JOB.ATTEMPT"
  const auto run = rundir::AgentLayout::parse_run_name(
      name.substr(std::min(name.size(), std::string_view(kGonePrefix).size())));
  disposal.post("remove run", [this, runs = options.layout.runs(), name, run] {
    if (run)
      if (auto left = leave_trees(rundir::RunLayout(runs / name).inputs(),
                                  trees_run_name(options.node, *run));
          !left)
        return trouble(
            fmt::format("removing the inputs of run '{}': {}; the next start of the "
                        "agent tries again",
                        name_of(*run), left.error().message));
    if (const auto above = io::Beneath::open(runs, io::Links::Follow))
      (void)io::remove_tree(*above, name);
  });
}

void Host::Impl::trouble(const std::string& text) const {
  if (callbacks.trouble) callbacks.trouble(text);
}

}  // namespace muster::agent
