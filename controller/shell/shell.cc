#include "controller/shell/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <unordered_set>

#include "common/base/assert.h"
#include "common/log/log.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/event_fields.h"
#include "controller/shell/heartbeat_merge.h"
#include "controller/shell/replay.h"

namespace muster::controller {
namespace {

constexpr std::size_t kArchiveBacklogMax = 1'000;  // finished jobs that wait for an idle disk

// Makes the public form of each row of a turn.
class Describer final : public core::TurnWatcher {
 public:
  Describer(const Shell::Options& options, std::vector<EventPtr>& events)
      : options_(options), events_(events) {}
  void after(const journal::Row& row, const core::Ledger& ledger) override {
    events_.push_back(std::make_shared<const v1::Event>(options_.describe(row, ledger)));
  }

 private:
  const Shell::Options& options_;
  std::vector<EventPtr>& events_;
};

// True: an agent connects or disconnects with this item.
bool connects(const core::TurnItem& item) {
  if (const auto* asked = std::get_if<core::Asked>(&item.what)) return asked->then.has_value();
  const auto& observation = std::get<core::Observation>(item.what);
  return std::holds_alternative<core::Connected>(observation) ||
         std::holds_alternative<core::Disconnected>(observation);
}

}  // namespace

Shell::Shell(journal::Journal& journal, const Clock& clock, Options options)
    : journal_(journal),
      clock_(clock),
      options_(std::move(options)),
      horizon_({.stall_after = options_.stall_after, .wait_max = options_.stall_wait_max}),
      timer_(std::make_unique<async::Timer>(strand_, "timer")) {}

Shell::~Shell() { stop(); }

// --- start and stop ------------------------------------------------------------------------------

Result<Shell::Started> Shell::start() {
  strand_.assert_idle();
  JournalIndex expected(1);
  std::unordered_set<JobId> submitted;
  Replay replay([&](const journal::Row& row, const core::Ledger& ledger) MUSTER_REQUIRES(strand_) {
    // A gap in the indexes: rows that were archived or superseded. Watchers of all jobs cannot get
    // what was there.
    if (row.index > expected) history_.missing_to(JournalIndex(row.index.value - 1));
    expected = JournalIndex(row.index.value + 1);
    history_.add(std::make_shared<const v1::Event>(options_.describe(row, ledger)));
    if (const auto* event = std::get_if<core::JobSubmitted>(&row.event.body))
      submitted.insert(event->job);
    if (const auto* event = std::get_if<core::JobArchived>(&row.event.body)) {
      history_.forget(event->job);
      // The controller stopped between the event and the move of its rows.
      if (submitted.contains(event->job)) archive_.push_back(event->job);
    }
  });
  if (auto loaded = journal_.load([&](const journal::Row& row) { replay.row(row); }); !loaded)
    return fail(std::move(loaded.error()));
  state_.ledger = std::move(replay.ledger());
  state_.last = journal_.last();
  Started started{.epoch = {},
                  .cluster = {},
                  .index = {},
                  .loaded = state_.last,
                  .unreadable = replay.unreadable(),
                  .paused = options_.paused ? options_.paused() : std::string()};

  paused_ = started.paused;
  if (paused_.empty()) {
    Batch batch;
    Describer describer(options_, batch.events);
    batch.turned = core::first_turn(state_,
                                    {.now = clock_.now(),
                                     .new_cluster = options_.new_cluster,
                                     .version = options_.version,
                                     .lost = options_.lost ? options_.lost() : std::nullopt,
                                     .lineage_id = options_.lineage_id,
                                     .unreadable = started.unreadable},
                                    options_.limits, describer);
    if (auto appended = journal_.append(batch.rows()); !appended)
      return fail(std::move(appended.error()));
    for (EventPtr& event : batch.events) history_.add(std::move(event));
  }
  durable_.store(state_.last.value, std::memory_order_release);
  started.epoch = state_.ledger.epoch;
  started.cluster = state_.ledger.cluster;
  started.index = state_.last;
  started.jobs = state_.ledger.jobs.size();
  return started;
}

void Shell::open() {
  strand_.post("open", [this] {
    strand_.assert_on();
    open_ = true;
    state_.presence.listening_since = clock_.now().boot;
    wants_propose_ = true;
    turn();
  });
}

void Shell::stop() {
  if (stopped_) return;
  stopped_ = true;
  std::promise<void> idle_now;
  strand_.post("stop", [&] {
    strand_.assert_on();
    on_idle_ = [&idle_now] { idle_now.set_value(); };
    turn();
  });
  idle_now.get_future().wait();
  disk_.stop();
  archive_reads_.stop();
  strand_.stop();
  strand_.assert_idle();
  timer_.reset();
}

void Shell::pause(std::string why) {
  strand_.assert_on();
  MUSTER_ASSERT(!in_flight_, "a shell is paused between two batches");
  paused_ = std::move(why);
}

void Shell::idle() {
  if (!on_idle_) return;
  timer_->cancel();
  open_ = false;
  std::exchange(on_idle_, {})();
}

// --- in from other threads -----------------------------------------------------------------------

bool Shell::push(Item item, bool bounded) {
  item.heard = item.arrived;
  {
    const MutexLock lock(mutex_);
    if (bounded && bounded_ >= options_.inbox_max) return false;
    const std::optional<HeartbeatSlot> slot = heartbeat_slot(item);
    if (slot && replace_heartbeat(item, *slot)) return true;
    bounded_ += bounded ? 1 : 0;
    item.bounded = bounded;
    inbox_.push_back(std::move(item));
    if (slot) waiting_heartbeats_.emplace(*slot, &inbox_.back());
    if (scheduled_) return true;
    scheduled_ = true;
  }
  strand_.post("batch", [this] { turn(); });
  return true;
}

std::optional<Shell::HeartbeatSlot> Shell::heartbeat_slot(const Item& item) {
  const auto* observation = std::get_if<core::Observation>(&item.what);
  if (observation == nullptr) return std::nullopt;
  if (const auto* heartbeat = std::get_if<core::HeartbeatHeard>(observation))
    return HeartbeatSlot(heartbeat->node, heartbeat->connection, false);
  if (const auto* acked = std::get_if<core::HeartbeatAcked>(observation))
    return HeartbeatSlot(acked->node, acked->connection, true);
  return std::nullopt;
}

// False: no heartbeat of this connection waits. The new one takes the position of the first: at the
// end of the inbox, deadlines could be judged before it is handled.
bool Shell::replace_heartbeat(Item& item, const HeartbeatSlot& slot) {
  const auto waiting = waiting_heartbeats_.find(slot);
  if (waiting == waiting_heartbeats_.end()) return false;
  Item& there = *waiting->second;
  auto& newest = std::get<core::Observation>(item.what);
  if (auto* heartbeat = std::get_if<core::HeartbeatHeard>(&newest)) {
    take_over(
        heartbeat->heartbeat,
        std::move(
            std::get<core::HeartbeatHeard>(std::get<core::Observation>(there.what)).heartbeat));
  }
  there.what = std::move(newest);
  there.heard = item.heard;
  return true;
}

bool Shell::submit(core::Input input, Now arrived, ReplyFn reply) {
  return push({.arrived = arrived,
               .what = InputItem{.asked = {.input = std::move(input)}, .reply = std::move(reply)}},
              true);
}
void Shell::report(core::Input input, Now arrived, ReplyFn reply) {
  (void)push({.arrived = arrived,
              .what = InputItem{.asked = {.input = std::move(input)}, .reply = std::move(reply)}},
             false);
}
void Shell::report_and_observe(core::Input input, core::Observation then, Now arrived,
                               ReplyFn reply) {
  (void)push({.arrived = arrived,
              .what = InputItem{.asked = {.input = std::move(input), .then = std::move(then)},
                                .reply = std::move(reply)}},
             false);
}
void Shell::observe(core::Observation observation, Now arrived) {
  (void)push({.arrived = arrived, .what = std::move(observation)}, false);
}
bool Shell::read(ReadFn read) {
  return push({.arrived = clock_.now(), .what = std::move(read)}, true);
}
void Shell::read_always(ReadFn read) {
  (void)push({.arrived = clock_.now(), .what = std::move(read)}, false);
}

void Shell::with_journal(const char* name, std::move_only_function<void(journal::Journal&)> work) {
  disk_.post(name, [this, work = std::move(work)]() mutable { work(journal_); });
}

void Shell::with_archive(const char* name, std::move_only_function<void(journal::Journal&)> work) {
  // Goes through the journal's thread: a job that has left the ledger is in the archive only after
  // that thread has moved it. Rows that wait for an idle disk are moved first. One call moves all
  // that wait, and archive_next() does nothing for a job that is moved already.
  strand_.post(name, [this, name, work = std::move(work)]() mutable {
    strand_.assert_on();
    if (!archive_.empty() && paused_.empty() && !failed_)
      disk_.post("archive", [this, job = archive_.back()] { (void)journal_.archive(job); });
    disk_.post(name, [this, name, work = std::move(work)]() mutable {
      archive_reads_.post(name, [this, work = std::move(work)]() mutable { work(journal_); });
    });
  });
}

// --- the batch -----------------------------------------------------------------------------------

std::vector<Shell::Item> Shell::drain(std::optional<BootTime>& first_left) {
  std::vector<Item> items;
  const MutexLock lock(mutex_);
  scheduled_ = false;
  if (in_flight_) return items;  // release() calls turn() again
  const std::size_t count = std::min(inbox_.size(), options_.batch_max);
  items.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    bounded_ -= inbox_.front().bounded ? 1 : 0;
    if (const auto slot = heartbeat_slot(inbox_.front())) waiting_heartbeats_.erase(*slot);
    items.push_back(std::move(inbox_.front()));
    inbox_.pop_front();
  }
  if (!inbox_.empty()) {
    first_left = inbox_.front().arrived.boot;
    scheduled_ = true;
    strand_.post("batch", [this] { turn(); });
  }
  return items;
}

void Shell::turn() {
  strand_.assert_on();
  std::optional<BootTime> first_left;
  std::vector<Item> items = drain(first_left);
  if (in_flight_) return;
  if (failed_) return idle();

  now_ = clock_.now();
  auto batch = std::make_shared<Batch>();
  for (Item& item : items) sort_into(*batch, std::move(item));
  run(*batch, !items.empty(), first_left);
  tell_readings(*batch);
  if (!batch->rows().empty()) return append(std::move(batch));
  release(*batch);
  if (!first_left) {
    archive_next();
    idle();
  }
}

void Shell::sort_into(Batch& batch, Item item) {
  if (auto* input = std::get_if<InputItem>(&item.what)) {
    batch.items.push_back({.heard = item.heard, .what = std::move(input->asked)});
    batch.replies.push_back(std::move(input->reply));
  } else if (auto* observation = std::get_if<core::Observation>(&item.what)) {
    batch.items.push_back({.heard = item.heard, .what = std::move(*observation)});
  } else {
    batch.reads.push_back(std::move(std::get<ReadFn>(item.what)));
  }
}

// `any`: there are items or reads.
void Shell::run(Batch& batch, bool any, const std::optional<BootTime>& first_left) {
  std::optional<BootTime> judge_until;
  if (open_ && paused_.empty() && (wants_propose_ || any)) {
    const core::Horizon::Judgement judgement = horizon_.judge(now_.boot, first_left);
    if (judgement.late) {
      log::warn("this process was delayed; silence is judged a little later",
                {{"late_ms",
                  std::chrono::duration_cast<std::chrono::milliseconds>(*judgement.late).count()}});
    }
    if (wants_propose_ || now_.boot >= heartbeat_propose_at_ ||
        !std::ranges::all_of(batch.items, core::is_heartbeat)) {
      judge_until = judgement.until;
    } else {
      arm(heartbeat_propose_at_);
    }
  }
  Describer describer(options_, batch.events);
  batch.turned = core::turn(state_,
                            {.items = batch.items,
                             .now = now_,
                             .limits = options_.limits,
                             .paused = paused_,
                             .judge_until = judge_until,
                             .rounds_max = options_.rounds_max},
                            describer);
  for (const std::string& why : batch.turned.moot)
    log::debug("a proposal came to nothing", {{"why", why}});
  if (!judge_until) return;
  wants_propose_ = false;
  const Duration spent = clock_.now().boot - now_.boot;
  heartbeat_propose_at_ = now_.boot + 10 * spent;
  timer_->cancel();
  horizon_.set_timer({});
  if (const auto next = horizon_.next(batch.turned.wake_at)) arm(*next);
}

// Presence is not durable, so what heartbeats brought is told at once.
void Shell::tell_readings(const Batch& batch) {
  for (const core::TurnItem& item : batch.items) {
    const auto* observation = std::get_if<core::Observation>(&item.what);
    if (observation == nullptr) continue;
    const auto* heartbeat = std::get_if<core::HeartbeatHeard>(observation);
    if (heartbeat == nullptr) continue;
    if (listener_ != nullptr) listener_->on_heartbeat(*heartbeat, state_.presence);
    if (by_job_.empty() && watching_all_.empty()) continue;
    for (const v1::AttemptReading& reading : heartbeat->heartbeat.readings()) {
      const JobId job(reading.job_id());
      for (auto [at, end] = by_job_.equal_range(job); at != end; ++at)
        at->second->on_reading(job, state_.presence);
      for (Watcher* watcher : watching_all_) watcher->on_reading(job, state_.presence);
    }
  }
}

void Shell::arm(BootTime wake_at) {
  if (horizon_.timer() && *horizon_.timer() <= wake_at) return;
  // At least a millisecond: a wake-up in the past that changes nothing must not spin. It counts
  // from the present, not from the batch's begin: the time of the batch itself is no stall.
  const BootTime now = clock_.now().boot;
  const Duration after = std::max<Duration>(wake_at - now, std::chrono::milliseconds(1));
  horizon_.set_timer(now + after);
  timer_->arm(after, [this] {
    strand_.assert_on();
    wants_propose_ = true;
    // While a batch is in flight, the strand is well and only the disk is busy: no stall.
    if (in_flight_) horizon_.set_timer({});
    turn();
  });
}

void Shell::append(std::shared_ptr<Batch> batch) {
  in_flight_ = true;
  disk_.post("append", [this, batch = std::move(batch)]() mutable {
    Result<void> done = journal_.append(batch->rows());
    strand_.post("release", [this, batch = std::move(batch), done = std::move(done)]() mutable {
      strand_.assert_on();
      in_flight_ = false;
      if (!done) {
        failed_ = true;
        if (options_.on_fatal) options_.on_fatal(done.error());
        return idle();
      }
      durable_.store(batch->rows().back().index.value, std::memory_order_release);
      release(*batch);
      if (archive_.size() > kArchiveBacklogMax) archive_next();
      turn();
    });
  });
}

void Shell::release(Batch& batch) {
  const View shown = view();
  if (!batch.rows().empty() && listener_ != nullptr) listener_->on_release(batch.rows(), shown);
  tell_watchers(batch, shown);
  const JournalIndex durable(durable_.load(std::memory_order_relaxed));
  for (std::size_t i = 0; i < batch.replies.size(); ++i) {
    core::Answer& answer = batch.turned.answers[i];
    if (!batch.replies[i]) continue;
    batch.replies[i]({.refusal = std::move(answer.refusal),
                      .job = std::move(answer.job),
                      .repeated = answer.repeated,
                      .index = durable},
                     shown);
  }
  for (ReadFn& read : batch.reads) read(shown);
}

void Shell::tell_watchers(const Batch& batch, const View& shown) {
  std::unordered_map<JobId, std::vector<EventPtr>> by_job;
  for (const EventPtr& event : batch.events) {
    history_.add(event);
    if (const JobId job(event->job_id()); !job.empty() && by_job_.contains(job))
      by_job[job].push_back(event);
  }
  for (const auto& [job, events] : by_job) {
    for (auto [at, end] = by_job_.equal_range(job); at != end; ++at)
      at->second->on_events(events, shown);
  }
  if (!batch.events.empty()) {
    for (Watcher* watcher : watching_all_) watcher->on_events(batch.events, shown);
  }
  if (std::ranges::any_of(batch.items, connects)) {
    for (const auto& [pointer, watching] : watchers_)
      watching.watcher->on_presence(state_.presence);
  }
  for (const journal::Row& row : batch.rows()) {
    if (const auto* archived = std::get_if<core::JobArchived>(&row.event.body)) {
      history_.forget(archived->job);
      archive_.push_back(archived->job);
    }
  }
}

// Rows of archived jobs are moved one job at a time, when nothing else needs the disk. If too many
// wait, they are moved anyway.
void Shell::archive_next() {
  if (archiving_ || archive_.empty() || !paused_.empty()) return;
  archiving_ = true;
  disk_.post("archive", [this, job = archive_.front()] {
    Result<void> done = journal_.archive(job);
    strand_.post("archived", [this, job, done = std::move(done)] {
      strand_.assert_on();
      archiving_ = false;
      archive_.pop_front();
      // The rows stay where they are; the next start tries again.
      if (!done)
        log::error("a finished job's rows were not moved to the archive",
                   {{"job", job.str()}, {"why", done.error().message}});
      turn();
    });
  });
}

// --- watchers ------------------------------------------------------------------------------------

Result<void> Shell::add_watcher(std::shared_ptr<Watcher> watcher, const JobId& job,
                                const std::string& user) {
  strand_.assert_on();
  if (watchers_.size() >= options_.watchers_max)
    return fail(ErrorCode::ResourceExhausted, "too many watchers are connected; end some of them");
  if (!user.empty()) {
    const auto own = watchers_of_.find(user);
    if (own != watchers_of_.end() && own->second >= options_.watchers_share) {
      return fail(ErrorCode::ResourceExhausted,
                  fmt::format("user '{}' has {} watchers, as many as one user may have; end some "
                              "of them",
                              user, own->second));
    }
    ++watchers_of_[user];
  }
  Watcher* const pointer = watcher.get();
  watchers_.emplace(pointer, Watching{std::move(watcher), job, user});
  if (job.empty()) {
    watching_all_.push_back(pointer);
  } else {
    by_job_.emplace(job, pointer);
  }
  return {};
}

void Shell::remove_watcher(const Watcher* watcher) {
  strand_.post("watcher-gone", [this, watcher] {
    strand_.assert_on();
    const auto found = watchers_.find(watcher);
    if (found == watchers_.end()) return;
    std::erase(watching_all_, watcher);
    for (auto [at, end] = by_job_.equal_range(found->second.job); at != end; ++at) {
      if (at->second == watcher) {
        by_job_.erase(at);
        break;
      }
    }
    if (const auto own = watchers_of_.find(found->second.user);
        own != watchers_of_.end() && --own->second == 0)
      watchers_of_.erase(own);
    watchers_.erase(found);
  });
}

}  // namespace muster::controller
