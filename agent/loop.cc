#include "agent/loop.h"

#include <algorithm>
#include <future>

#include "agent/core/run_phase.h"
#include "common/log/log.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

constexpr Duration kGatherWindow = milliseconds(5);
constexpr Duration kRetryAfter = std::chrono::seconds(1);

bool all_ended(const RunSeen* seen) {
  return seen != nullptr && seen->exits.size() >= seen->ranks.size();
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
  loop_.assert_on();
  HostOptions host = options_.host;
  host.cluster = controller_.identity().cluster;
  host.clock = options_.clock;
  const auto self = [this] {
    const MutexLock lock(log_hello_mutex_);
    return log_hello_;
  };
  files_ = std::make_shared<FileStreams>(
      FileStreams::Options{.endpoint = options_.endpoint, .self = self});
  host.fetch = [files = files_](const v1::NodeLaunch& order, int number, const UserEntry* owner) {
    return files->fetch(order, number, owner);
  };
  secrets_ = std::make_shared<SecretFetch>(
      SecretFetch::Options{.endpoint = options_.endpoint, .self = [this] {
                             const MutexLock lock(log_hello_mutex_);
                             return joined_;
                           }});
  stores_ = std::make_unique<StoreReports>(
      StoreReports::Options{.endpoint = options_.endpoint, .self = self});
  host.fetch_secrets = [secrets = secrets_](const v1::NodeLaunch& order) {
    return secrets->fetch(order);
  };
  uploads_ = std::make_unique<Uploads>(
      Uploads::Options{.fetch_secrets = host.fetch_secrets,
                       .on_end =
                           [this](const UploadTask& task, const Uploaded& end) {
                             loop_.post("uploaded", [this, task, end] {
                               loop_.assert_on();
                               if (stopped_) return;
                               host_->note_outputs(task.run, {.files = end.files,
                                                              .bytes = end.bytes,
                                                              .problem = end.problem,
                                                              .step = task.step,
                                                              .seal = task.seal,
                                                              .sums_sha256 = end.sums_sha256,
                                                              .logs = task.logs,
                                                              .removed = end.removed,
                                                              .not_removed = end.not_removed});
                             });
                           },
                       .logs = [this]() -> LogSource& { return *watch_; },
                       .layout = options_.host.layout});
  if (options_.probe) {
    host.fill_facts = [devices = device_ids_](NodeFacts& facts) { devices->fill(facts); };
  }
  auto watch = Watch::start(
      options_.watch,
      [loop = &loop_](std::function<void()> task) { loop->post("watch", std::move(task)); },
      {.on_first_step =
           [this](const RunKey& run, std::int64_t step) {
             loop_.assert_on();
             if (stopped_) return;
             host_->note_first_step(run, step);
             heartbeat_soon();
           },
       .on_rank_end =
           [this](const RunKey& run, RankNo rank, const RankEnd& end) {
             loop_.assert_on();
             if (stopped_) return;
             host_->note_rank_end(run, rank.value, end.evidence, end.success_seen,
                                  end.evidence_kind, end.step, end.total);
             // sends the last loss before the job ends and nobody reads it any more
             if (end.step && all_ended(host_->seen(run))) heartbeat();
           },
       .on_shard_finished = [this](const RunKey&) { heartbeat_soon(); },
       .on_last_scan = [this](const RunKey& run) { last_scan(run); },
       .on_trouble = [](const std::string& text) { log::warn(text); }});
  if (!watch) return fail(std::move(watch).error());
  watch_ = std::move(*watch);
  host.watch = watch_.get();
  auto opened = Host::open(loop_, std::move(host),
                           {.changed = [this](const RunKey& run) { run_changed(run); },
                            .trouble = [](const std::string& text) { log::warn(text); }});
  if (!opened) return fail(std::move(opened).error());
  host_ = std::move(*opened);
  forget_uploads({});
  for (const auto& [run, seen] : host_->seen()) {
    log::info(is_supervised(phase_of(seen, options_.host.self.boot_id))
                  ? "adopted a run"
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
    loop_.assert_on();
    stopped_ = true;
    for (async::Timer* timer : {&heartbeat_timer_, &gather_timer_, &retry_timer_, &identity_timer_,
                                &first_probe_timer_, &network_timer_}) {
      timer->cancel();
    }
    news_ready_.reset();
    if (link_) link_->stop();
    if (outputs_) outputs_->stop();
    if (identity_later_.under_way()) store_identity(true);
    if (host_) host_->close();  // from now on nobody calls the watch
    closed.set_value();
  });
  closed.get_future().wait();
  if (link_) link_->wait();
  if (log_push_) log_push_->stop();
  if (files_) files_->stop();
  if (secrets_) secrets_->stop();
  if (stores_) stores_->stop();
  if (uploads_) uploads_->stop();
  if (watch_) watch_->stop();
  disk_.stop();
}

// --- turns ---------------------------------------------------------------------------------------

// This may be called inside the host, so everything else happens in its own turn. Changes until
// then are part of that turn.
void Agent::run_changed(const RunKey& run) {
  loop_.assert_on();
  dirty_.insert(run);
  if (stopped_ || !turn_later_.want_one()) return;
  loop_.post("turn", [this] {
    loop_.assert_on();
    turn_later_.ended();
    if (!stopped_) turn();
  });
}

void Agent::turn() {
  loop_.assert_on();
  for (const RunKey& run : std::exchange(dirty_, {})) {
    if (host_->seen(run) != nullptr) gather(run);
  }
  reconcile_now();
  note_own_processes();
}

// What the run saved last is sent first, then its sweep. The next attempt is placed by what the
// controller knows then.
void Agent::last_scan(const RunKey& run) {
  loop_.assert_on();
  if (stopped_) return;
  heartbeat();
  host_->note_last_scan(run);
}

void Agent::gather(const RunKey& run) {
  loop_.assert_on();
  if (!link_ || !link_->up()) return;
  const bool urgent = outbox_.gather(
      run, host_->facts(run),
      [&](const v1::RankExited& exited) { return host_->reportable(run, exited); },
      host_->scanned(run));
  if (urgent) {
    flush();
  } else if (!outbox_.empty() && flush_later_.want_one()) {
    // from the first fact on: a stream of facts must not postpone it for ever
    gather_timer_.arm(kGatherWindow, [this] { flush(); });
  }
}

namespace {

// Its end is reported, or will be.
bool has_ended(const RunSeen& seen, const UploadTask& task) {
  if (task.logs) return seen.logs_end.has_value();
  if (!task.step) return seen.outputs.has_value();
  const auto& newest = task.seal ? seen.checkpoint_sealed : seen.checkpoint_sent;
  return newest && *newest->step >= *task.step;
}

// Another attempt of the job may write to the same place.
bool another_runs(const std::map<RunKey, RunSeen>& seen, const RunKey& run) {
  return std::ranges::any_of(seen, [&](const auto& one) {
    return one.first.first == run.first && one.first != run && one.second.launch_sound &&
           !one.second.swept;
  });
}

}  // namespace

void Agent::upload_ordered(const v1::Orders& orders) {
  loop_.assert_on();
  std::set<UploadTask> wanted;
  for (const v1::UploadOrder& order : orders.uploads()) {
    UploadTask task{.run = {JobId(order.job_id()), AttemptNo(order.attempt())},
                    .step = {},
                    .seal = order.seal(),
                    .logs = order.logs()};
    if (order.has_step()) task.step = order.step();
    for (const v1::RemoteCheckpoint& one : order.remove())
      task.remove.push_back({.attempt = one.attempt(), .step = one.step(), .mark = one.mark()});
    for (const v1::RemoteCheckpoint& one : order.kept())
      task.kept.push_back({.attempt = one.attempt(), .step = one.step()});
    for (const v1::NodeSums& one : order.sums())
      task.sums.push_back({.node = one.node(), .sha256 = one.sha256()});
    wanted.insert(std::move(task));
  }
  uploads_->keep_only(wanted);
  for (const UploadTask& task : wanted) {
    const RunSeen* seen = host_->seen(task.run);
    if (seen == nullptr || has_ended(*seen, task)) continue;
    if (!task.step && !seen->swept) continue;
    // Of an attempt that the controller's journal has lost. Each attempt has logs of its own.
    if (!task.step && !task.logs && another_runs(host_->seen(), task.run)) continue;
    const bool has_place = task.logs ? seen->uploads_logs : seen->uploads;
    const v1::NodeLaunch* launch = has_place ? host_->order(task.run) : nullptr;
    if (launch != nullptr) {
      uploads_->want(task, *launch);
    } else {
      // A power cut took it. The controller waits for an answer.
      host_->note_outputs(task.run, {.problem = "the node has lost the run's launch record",
                                     .step = task.step,
                                     .seal = task.seal,
                                     .logs = task.logs});
    }
  }
}

void Agent::upload_while_running() {
  loop_.assert_on();
  std::map<RunKey, const v1::NodeLaunch*> running;
  for (const auto& [run, seen] : host_->seen())
    if ((seen.uploads || seen.uploads_logs) && seen.started && !seen.swept)
      if (const v1::NodeLaunch* launch = host_->order(run)) running.emplace(run, launch);
  uploads_->while_running(running);
}

void Agent::forget_uploads(const RunKey& gone) {
  loop_.assert_on();
  std::set<JobId> jobs;
  for (const auto& [run, seen] : host_->seen())
    if (run != gone) jobs.insert(run.first);
  uploads_->forget_all_but(jobs);
}

void Agent::flush() {
  loop_.assert_on();
  gather_timer_.cancel();
  flush_later_.ended();
  while (!outbox_.empty() && link_ && link_->up()) {
    v1::Facts facts = outbox_.take();
    set_ages(facts, options_.host.self, host_->seen(), options_.clock->now());
    link_->send_facts(std::move(facts));
  }
}

void Agent::reconcile_now() {
  loop_.assert_on();
  if (const v1::Orders* orders = controller_.orders()) upload_ordered(*orders);
  upload_while_running();
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
  loop_.assert_on();
  // The order may be older than the run's end, if its job was archived without that end. The
  // controller keeps the node's devices for the run, so it must learn that the run is swept.
  if (link_ && link_->up()) {
    (void)outbox_.gather(run, host_->facts(run), [](const v1::RankExited&) { return true; });
    flush();
  }
  outbox_.forget(run);
  forget_uploads(run);
  log::info("forgetting a run: everything of it is with the controller",
            {{"job", run.first.str()}, {"attempt", run.second.value}});
}

}  // namespace muster::agent
