#include "agent/loop.h"

#include <algorithm>
#include <future>

#include "agent/logs/auxiliary_log.h"
#include "common/log/log.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

constexpr Duration kGatherWindow = milliseconds(5);
// An exit's fact waits at most this long for its evidence or last step. Later evidence does not
// change a fact that was sent.
constexpr Duration kEvidenceBound = std::chrono::seconds(1);
// A good exit's fact waits this long without a byte read, if success is looked for: it decides the
// job.
constexpr Duration kUnreadBound = std::chrono::seconds(10);
// a sweep's fact waits at most this long for the last scan of the checkpoints
constexpr Duration kLastScanBound = std::chrono::seconds(15);
constexpr Duration kRetryAfter = std::chrono::seconds(1);

bool has_success_file(const v1::RankProcess& rank) { return !rank.success_file().empty(); }

std::map<std::uint32_t, std::string> success_files(const v1::NodeLaunch& order) {
  std::map<std::uint32_t, std::string> files;
  for (const v1::RankProcess& rank : order.ranks())
    if (has_success_file(rank)) files[rank.rank()] = rank.success_file();
  return files;
}

bool tells_steps(const v1::Watching& watching) {
  return !watching.step_regex().empty() ||
         (!watching.grammar().empty() && watching.grammar() != "none");
}

bool all_ended(const RunSeen* seen) {
  return seen != nullptr && seen->exits.size() >= seen->ranks.size();
}

std::string name_of(const RunKey& run) {
  return run.first.str() + "." + std::to_string(run.second.value);
}

}  // namespace

Agent::Agent(async::Loop& loop, StateDir state, AgentOptions options)
    : loop_(loop),
      disk_("agent-disk"),
      options_(std::move(options)),
      state_(std::make_shared<StateDir>(std::move(state))),
      controller_(state_->identity()),
      heartbeat_timer_(loop, "heartbeat"),
      gather_timer_(loop, "gather facts"),
      evidence_timer_(loop, "evidence bound"),
      retry_timer_(loop, "retry actions"),
      identity_timer_(loop, "store identity"),
      first_probe_timer_(loop, "first probe of devices"),
      network_timer_(loop, "read network") {}

Agent::~Agent() { disk_.stop(); }

Result<void> Agent::start() {
  std::promise<Result<void>> opened;
  auto result = opened.get_future();
  loop_.post("start", [this, &opened] { opened.set_value(open()); });
  return result.get();
}

Result<void> Agent::open() {
  HostOptions host = options_.host;
  host.cluster = controller_.identity().cluster;
  host.clock = options_.clock;
  const auto self = [this] {
    const std::lock_guard lock(log_hello_mutex_);
    return log_hello_;
  };
  files_ = std::make_shared<FileStreams>(
      FileStreams::Options{.endpoint = options_.endpoint, .self = self});
  host.fetch = [files = files_](const v1::NodeLaunch& order, int number, const UserEntry* owner) {
    return files->fetch(order, number, owner);
  };
  if (options_.probe) {
    host.prepare = [prepare = std::move(host.prepare),
                    devices = device_ids_](StartRequest request) {
      devices->fill(request.node);
      return prepare(std::move(request));
    };
  }
  auto opened = Host::open(loop_, std::move(host),
                           {.changed = [this](const RunKey& run) { run_changed(run); },
                            .trouble = [](const std::string& text) { log::warn(text); }});
  if (!opened) return fail(std::move(opened).error());
  host_ = std::move(*opened);
  auto watch = Watch::start(
      options_.watch,
      [loop = &loop_](std::function<void()> task) { loop->post("watch", std::move(task)); },
      {.on_first_step =
           [this](const RunKey& run, std::int64_t step) {
             if (stopped_) return;
             host_->note_first_step(run, step);
             heartbeat_soon();
           },
       .on_rank_end =
           [this](const RunKey& run, RankNo rank, const RankEnd& end) {
             if (stopped_) return;
             host_->note_rank_end(run, rank.value, end.evidence, end.success_seen,
                                  end.evidence_kind, end.step, end.total);
             // sends the last loss before the job ends and nobody reads it any more
             if (end.step && all_ended(host_->seen(run))) heartbeat();
             // also if the disk refused the mark: the fact must not wait
             run_changed(run);
             if (const auto at = watched_.find(run); at != watched_.end())
               at->second.asked[rank.value] = ExitWait();
           },
       .on_shard_finished = [this](const RunKey&) { heartbeat_soon(); },
       .on_last_scan = [this](const RunKey& run) { last_scan(run); },
       .on_trouble = [](const std::string& text) { log::warn(text); }});
  if (!watch) return fail(std::move(watch).error());
  watch_ = std::move(*watch);
  for (const auto& [run, seen] : host_->seen()) {
    log::info(seen.worker == WorkerState::Alive ? "adopted a run"
                                                : "found a run of an earlier incarnation",
              {{"job", run.first.str()}, {"attempt", run.second.value}});
    dirty_.insert(run);
  }
  turn();
  starting_up_ = false;
  start_log_push();
  watch_network();
  if (options_.probe) return start_devices();
  start_link();
  return {};
}

void Agent::stop() {
  if (prober_) prober_->stop();
  std::promise<void> closed;
  loop_.post("stop", [this, &closed] {
    stopped_ = true;
    for (async::Timer* timer : {&heartbeat_timer_, &gather_timer_, &evidence_timer_, &retry_timer_,
                                &identity_timer_, &first_probe_timer_, &network_timer_}) {
      timer->cancel();
    }
    news_ready_.reset();
    if (link_) link_->stop();
    if (identity_dirty_) store_identity(true);
    closed.set_value();
  });
  closed.get_future().wait();
  if (link_) link_->wait();
  if (log_push_) log_push_->stop();
  if (files_) files_->stop();
  if (watch_) watch_->stop();
  std::promise<void> ended;
  loop_.post("close", [this, &ended] {
    if (host_) host_->close();
    ended.set_value();
  });
  ended.get_future().wait();
  disk_.stop();
}

// --- turns ---------------------------------------------------------------------------------------

// This may be called inside the host, so everything else happens in its own turn. Changes until
// then are part of that turn.
void Agent::run_changed(const RunKey& run) {
  dirty_.insert(run);
  if (turn_posted_ || stopped_) return;
  turn_posted_ = true;
  loop_.post("turn", [this] {
    turn_posted_ = false;
    if (!stopped_) turn();
  });
}

void Agent::turn() {
  for (const RunKey& run : std::exchange(dirty_, {})) {
    const RunSeen* seen = host_->seen(run);
    if (seen == nullptr) continue;
    tell_watch(run, *seen);
    gather(run, *seen);
  }
  arm_evidence_timer();
  reconcile_now();
  note_own_processes();
}

// A lack of descriptors is temporary. An error in the order itself is permanent.
void Agent::add_to_watch(const RunKey& run, const RunSeen& seen, WatchedRun& watched) {
  const BootTime now = options_.clock->now().boot;
  if (watched.added || watched.add_again > now) return;
  const v1::NodeLaunch& order = *host_->order(run);
  auto added = watch_->add(run, host_->directory(run), order.watching(), seen.ranks,
                           auxiliary_logs(order), success_files(order));
  watched.added = added.has_value();
  if (added) return;
  const bool for_good = added.error().code == ErrorCode::InvalidArgument ||
                        added.error().code == ErrorCode::Unsupported;
  watched.add_again = for_good ? BootTime::max() : now + kRetryAfter;
  if (std::exchange(watched.refused, added.error().message) == added.error().message) return;
  log::warn("watching the logs of run '" + name_of(run) + "': " + added.error().message +
            "; its progress is not seen" + (for_good ? "" : ", trying again until it is"));
}

void Agent::tell_watch(const RunKey& run, const RunSeen& seen) {
  WatchedRun& watched = watched_[run];
  const v1::NodeLaunch* order = host_->order(run);
  // nothing ever ran, or the record is damaged: no log can be named
  if (order == nullptr) return;
  add_to_watch(run, seen, watched);
  for (; watched.added && watched.followed < seen.script_logs.size(); ++watched.followed) {
    const ScriptLogSeen& log = seen.script_logs[watched.followed];
    if (auto follows = watch_->follow(run, script_log(log)); !follows)
      log::warn("following the log of rank " + std::to_string(log.rank) + " of run '" +
                name_of(run) + "': " + follows.error().message + "; it is left out");
  }
  const bool success_wanted = !order->watching().success_regex().empty() ||
                              !order->watching().success_file().empty() ||
                              order->watching().success_last_step() ||
                              std::ranges::any_of(order->ranks(), has_success_file);
  const BootTime now = options_.clock->now().boot;
  for (const auto& [rank, exit] : seen.exits) {
    const bool failed = (exit.code != 0 || exit.signal != 0) && !exit.stop_requested;
    const bool known = host_->rank_end_known(run, rank);
    const auto [asked, first] = watched.asked.try_emplace(rank);
    ExitWait& wait = asked->second;
    if (!first) {
      if (wait.until() <= now && watched.added && !known) wait.check(now, watch_->bytes_read(run));
    } else if (!known && watched.add_again != BootTime::max()) {
      if (failed && watched.added) {
        wait = ExitWait::at_most(now, kEvidenceBound);
      } else if (!failed && success_wanted && !exit.stop_requested) {
        wait = ExitWait::while_read(now, kUnreadBound, watch_->bytes_read(run));
      } else if (!failed && !exit.stop_requested && watched.added &&
                 tells_steps(order->watching())) {
        wait = ExitWait::at_most(now, kEvidenceBound);
      }
    }
    if (watched.added && watched.ended.insert(rank).second)
      watch_->rank_ended(run, RankNo(rank), failed);
  }
  if (seen.swept && watched.added && !watched.swept_notified) {
    watched.swept_notified = true;
    const bool checkpoints = !order->watching().save_dir().empty() &&
                             !order->watching().layout().empty() &&
                             order->watching().layout() != "none";
    if (checkpoints) watched.swept_waits = now + kLastScanBound;
    watch_->run_swept(run);
  }
}

bool Agent::ready(const RunKey& run, const v1::RankExited& exited) const {
  if (exited.lost()) return true;
  const auto watched = watched_.find(run);
  if (watched == watched_.end()) return true;
  const auto asked = watched->second.asked.find(exited.rank());
  if (asked == watched->second.asked.end()) return true;
  return asked->second.until() <= options_.clock->now().boot ||
         host_->rank_end_known(run, exited.rank());
}

// What the run saved last is sent first, then its sweep. The next attempt is placed by what the
// controller knows then.
void Agent::last_scan(const RunKey& run) {
  const auto watched = watched_.find(run);
  if (stopped_ || watched == watched_.end()) return;
  watched->second.swept_waits = {};
  heartbeat();
  run_changed(run);
}

bool Agent::scanned(const RunKey& run) const {
  const auto watched = watched_.find(run);
  return watched == watched_.end() || watched->second.swept_waits <= options_.clock->now().boot;
}

void Agent::gather(const RunKey& run, const RunSeen& seen) {
  if (!link_ || !link_->up()) return;
  const bool urgent = outbox_.gather(
      run, facts_of(run, seen), [&](const v1::RankExited& exited) { return ready(run, exited); },
      scanned(run));
  if (urgent) {
    flush();
  } else if (!outbox_.empty() && !gathering_) {
    gathering_ = true;  // from the first fact on: a stream of facts must not postpone it for ever
    gather_timer_.arm(kGatherWindow, [this] { flush(); });
  }
}

void Agent::flush() {
  gather_timer_.cancel();
  gathering_ = false;
  while (!outbox_.empty() && link_ && link_->up()) {
    v1::Facts facts = outbox_.take();
    set_ages(facts, options_.host.self, host_->seen(), options_.clock->now());
    link_->send_facts(std::move(facts));
  }
}

void Agent::arm_evidence_timer() {
  std::optional<BootTime> next;
  const BootTime now = options_.clock->now().boot;
  for (const auto& [run, watched] : watched_) {
    const auto consider = [&](BootTime until) {
      if (until > now) next = std::min(next.value_or(until), until);
    };
    for (const auto& [rank, wait] : watched.asked) {
      if (!host_->rank_end_known(run, rank)) consider(wait.until());
    }
    consider(watched.swept_waits);
    if (!watched.added && watched.add_again != BootTime::max()) consider(watched.add_again);
  }
  if (!next) return evidence_timer_.cancel();
  evidence_timer_.arm(*next - now, [this] {
    for (const auto& [run, watched] : watched_) {
      if (!watched.asked.empty() || watched.swept_waits != BootTime{} ||
          watched.add_again != BootTime{})
        dirty_.insert(run);
    }
    turn();
  });
}

void Agent::reconcile_now() {
  const auto actions =
      reconcile(options_.host.self, controller_.orders(), host_->seen(), starting_up_);
  for (const Action& action : actions) {
    if (const auto* start = std::get_if<StartRun>(&action))
      log::info("starting a run",
                {{"job", start->run.first.str()}, {"attempt", start->run.second.value}});
    if (const auto* refuse = std::get_if<RefuseRun>(&action)) {
      log::info("refusing a run: " + refuse->text,
                {{"job", refuse->run.first.str()}, {"attempt", refuse->run.second.value}});
    }
    if (const auto* gone = std::get_if<ForgetRun>(&action)) forget(gone->run);
    host_->perform(action);
  }
  // An action that the disk or the kernel refused is requested again. After a successful action the
  // next call finds nothing to do.
  if (actions.empty()) {
    retry_timer_.cancel();
  } else {
    retry_timer_.arm(kRetryAfter, [this] { reconcile_now(); });
  }
}

void Agent::forget(const RunKey& run) {
  // The order may be older than the run's end, if its job was archived without that end. The
  // controller keeps the node's devices for the run, so it must learn that the run is swept.
  const auto& seen = host_->seen();
  if (const auto last = seen.find(run); last != seen.end() && link_ && link_->up()) {
    (void)outbox_.gather(run, facts_of(run, last->second),
                         [](const v1::RankExited&) { return true; });
    flush();
  }
  const auto watched = watched_.find(run);
  if (watched != watched_.end() && watched->second.added) watch_->remove(run);
  watched_.erase(run);
  outbox_.forget(run);
  trimmed_.erase(run);
  log::info("forgetting a run: everything of it is with the controller",
            {{"job", run.first.str()}, {"attempt", run.second.value}});
}

}  // namespace muster::agent
