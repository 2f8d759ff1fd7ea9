// The loop's promise: nothing leaves before its batch is durable, and then everything leaves in
// order. The journal here is the real interface, with a sync that a test can block.
#include "controller/shell/shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "controller/api/event_text.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/journal/memory_journal.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kPatience(20);

class BlockedJournal final : public journal::Journal {
 public:
  explicit BlockedJournal(std::shared_ptr<journal::MemoryDisk> disk)
      : disk_(disk), inner_(std::move(disk)) {}

  Result<void> load(const std::function<void(const journal::Row&)>& each) override {
    return inner_.load(each);
  }
  Result<void> append(std::span<const journal::Row> batch) override {
    std::unique_lock lock(mutex_);
    ++syncing_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !blocked_; });
    return inner_.append(batch);
  }
  [[nodiscard]] JournalIndex last() const override { return inner_.last(); }
  Result<void> archive(const JobId& job) override { return inner_.archive(job); }
  Result<std::vector<journal::ArchivedJob>> archived(const std::optional<JobId>& before,
                                                     std::size_t most) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !reading_blocked_; });
    return inner_.archived(before, most);
  }
  Result<std::optional<journal::ArchivedJob>> archived_job(const JobId& job) override {
    return inner_.archived_job(job);
  }

  void hold() { set(true); }
  void let_go() { set(false); }
  void hold_reading(bool blocked) {
    const std::lock_guard lock(mutex_);
    reading_blocked_ = blocked;
    changed_.notify_all();
  }
  // Waits until `count` appends (of this journal's incarnation) have begun.
  bool wait_for_append(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return syncing_ >= count; });
  }
  std::size_t appends() {
    const std::lock_guard lock(mutex_);
    return syncing_;
  }
  journal::MemoryDisk& disk() { return *disk_; }

 private:
  void set(bool blocked) {
    const std::lock_guard lock(mutex_);
    blocked_ = blocked;
    changed_.notify_all();
  }
  std::shared_ptr<journal::MemoryDisk> disk_;
  journal::MemoryJournal inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool blocked_ = false, reading_blocked_ = false;
  std::size_t syncing_ = 0;
};

// What left the shell, in order.
class Trace {
 public:
  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  bool wait_for(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [&] { return std::ranges::find(lines_, what) != lines_.end(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

class TracingListener final : public Listener {
 public:
  explicit TracingListener(Trace& trace) : trace_(trace) {}
  void on_release(std::span<const journal::Row> rows, const View&) override {
    trace_.add("orders after " + std::to_string(rows.back().index.value));
    const auto placed = std::ranges::count_if(rows, [](const journal::Row& row) {
      return std::holds_alternative<core::AttemptPlaced>(row.event.body);
    });
    if (placed > 0) trace_.add("placed " + std::to_string(placed));
  }
  void on_heartbeat(const core::HeartbeatHeard& heartbeat, const core::Presence&) override {
    trace_.add("heartbeat " + std::to_string(heartbeat.heartbeat.number()));
  }

 private:
  Trace& trace_;
};

class TracingWatcher final : public Watcher {
 public:
  explicit TracingWatcher(Trace& trace) : trace_(trace) {}
  void on_events(std::span<const EventPtr> events, const View&) override {
    for (const EventPtr& event : events) trace_.add("event " + event->type());
  }
  void on_reading(const JobId& job, const core::Presence&) override {
    trace_.add("reading " + job.str());
  }
  void on_presence(const core::Presence&) override {}

 private:
  Trace& trace_;
};

v1::JobSpec spec(const std::string& name) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.set_engine("command");
  spec.mutable_launch()->add_run("true");
  spec.mutable_resources()->set_nodes(1);
  spec.mutable_resources()->set_devices(1);
  return spec;
}
core::SubmitJob submission(const std::string& id, const std::string& name) {
  return {.job = JobId(id), .spec = spec(name), .spec_hash = "h"};
}

class ShellTest : public testing::Test {
 protected:
  ShellTest() { make(); }
  ~ShellTest() override {
    journal_->let_go();
    shell_->stop();
  }

  void make() {
    journal_ = std::make_unique<BlockedJournal>(disk_);
    Shell::Options options;
    options.version = "test";
    options.new_cluster = ClusterId("cluster");
    options.describe = describe;
    options.lost = [this] { return lost_; };
    options.lineage_id = "lineage";
    options.watchers_share = 2;
    options.on_fatal = [this](const Error& error) { trace_.add("fatal " + error.message); };
    shell_ = std::make_unique<Shell>(*journal_, system_clock(), std::move(options));
    const auto started = shell_->start();
    ASSERT_TRUE(started) << started.error().message;
    started_ = *started;
    listener_ = std::make_unique<TracingListener>(trace_);
    shell_->set_listener(listener_.get());
    shell_->open();
  }
  void make_again() {
    shell_->stop();
    shell_.reset();
    make();
  }
  bool submit(const std::string& id, const std::string& name) {
    return shell_->submit(submission(id, name), shell_->now(),
                          [this, id](const Outcome& outcome, const View&) {
                            trace_.add((outcome.refusal ? "refused " : "reply ") + id);
                          });
  }
  void watch_all() {
    std::promise<void> done;
    ASSERT_TRUE(shell_->read([&](const View&) {
      ASSERT_TRUE(shell_->add_watcher(std::make_shared<TracingWatcher>(trace_), JobId()));
      done.set_value();
    }));
    ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  }
  // What a read sees when it is answered.
  std::size_t jobs_seen() {
    std::promise<std::size_t> seen;
    EXPECT_TRUE(shell_->read([&](const View& view) { seen.set_value(view.ledger.jobs.size()); }));
    return seen.get_future().get();
  }

  std::optional<core::LostEnd> lost_;
  std::shared_ptr<journal::MemoryDisk> disk_ = std::make_shared<journal::MemoryDisk>();
  Trace trace_;
  std::unique_ptr<BlockedJournal> journal_;
  std::unique_ptr<TracingListener> listener_;
  std::unique_ptr<Shell> shell_;
  Shell::Started started_;
};

// Regression: a page of the archive was read on the journal's thread, and every submission and
// every fact waited for it, for up to 0.9 s.
TEST_F(ShellTest, AnArchiveThatIsBeingReadHoldsNothingUp) {
  journal_->hold_reading(true);
  std::promise<std::size_t> page;
  shell_->with_archive(
      "test", [&](journal::Journal& journal) { page.set_value(journal.archived({}, 10)->size()); });
  ASSERT_TRUE(submit("0000000000001", "one"));
  EXPECT_TRUE(trace_.wait_for("reply 0000000000001"));
  journal_->hold_reading(false);
  EXPECT_EQ(page.get_future().get(), 0U);
}

// Regression: a job that had left the ledger was in the archive only after the disk had had nothing
// else to do. Until then the answer was that no job has its id.
TEST_F(ShellTest, AJobThatHasJustLeftTheLedgerIsInTheArchive) {
  const JobId id("0000000000001");
  ASSERT_TRUE(submit(id.str(), "one"));
  shell_->report(core::CancelJob{.job = id}, shell_->now(), {});
  std::promise<bool> found;
  shell_->report(core::ProposeArchive{.job = id}, shell_->now(),
                 [&](const Outcome&, const View& view) {
                   EXPECT_FALSE(view.ledger.jobs.contains(id));
                   shell_->with_archive("test", [&](journal::Journal& journal) {
                     const auto job = journal.archived_job(id);
                     found.set_value(job && job->has_value());
                   });
                 });
  auto answer = found.get_future();
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get());
}

TEST_F(ShellTest, NothingIsVisibleBeforeItIsDurable) {
  watch_all();
  journal_->hold();
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(journal_->wait_for_append(2));  // the first was ControllerStarted
  // This read arrives during the sync: an early answer would show a job that a power cut can still
  // undo.
  ASSERT_TRUE(shell_->read(
      [this](const View& view) { trace_.add("read " + std::to_string(view.ledger.jobs.size())); }));
  shell_->observe(core::HeartbeatHeard{.node = NodeName("n"), .connection = ConnectionId(1)},
                  shell_->now());
  std::promise<void> strand_is_through;
  shell_->strand().post("test", [&] { strand_is_through.set_value(); });
  strand_is_through.get_future().wait();
  EXPECT_EQ(trace_.lines(), std::vector<std::string>());
  EXPECT_EQ(shell_->durable(), started_.index);

  journal_->let_go();
  ASSERT_TRUE(trace_.wait_for("read 1"));
  const auto lines = trace_.lines();
  ASSERT_GE(lines.size(), 4u);
  EXPECT_EQ(lines[0], "orders after 2");
  EXPECT_EQ(lines[1], "event job-submitted");
  EXPECT_EQ(lines[2], "reply 0000000000001");
  EXPECT_EQ(shell_->durable().value, 2u);
}

TEST_F(ShellTest, WhatComesDuringASyncIsOneBatchAfterIt) {
  journal_->hold();
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(journal_->wait_for_append(2));
  for (int i = 2; i < 100; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_TRUE(submit(std::string(13 - text.size(), '0') + text, "job" + text));
  }
  journal_->let_go();
  ASSERT_TRUE(trace_.wait_for("reply 0000000000099"));
  EXPECT_EQ(journal_->appends(), 3u);  // started, the first job, all others
}

TEST_F(ShellTest, ARefusalNeedsNoSync) {
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(trace_.wait_for("reply 0000000000001"));
  const std::size_t before = journal_->appends();
  ASSERT_TRUE(submit("0000000000002", "one"));
  ASSERT_TRUE(trace_.wait_for("refused 0000000000002"));
  EXPECT_EQ(journal_->appends(), before);
}

TEST_F(ShellTest, AFailedAppendReleasesNothingAndIsFatal) {
  journal_->disk().fail_next_append = journal::MemoryDisk::Fail::AfterEffect;
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(shell_->read([this](const View&) { trace_.add("read"); }));
  for (const std::string& line : trace_.lines()) EXPECT_TRUE(line.starts_with("fatal")) << line;
  shell_->stop();
  const auto lines = trace_.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines.back().starts_with("fatal"));
  EXPECT_EQ(std::ranges::count_if(lines,
                                  [](const std::string& line) {
                                    return line.starts_with("reply") || line.starts_with("orders");
                                  }),
            0);
}

TEST_F(ShellTest, StartsAgainWhereItWasWithAHigherEpoch) {
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(trace_.wait_for("reply 0000000000001"));
  const Shell::Started first = started_;
  make_again();
  EXPECT_EQ(started_.epoch.value, first.epoch.value + 1);
  EXPECT_EQ(started_.cluster, first.cluster);
  EXPECT_EQ(started_.jobs, 1u);
  EXPECT_EQ(jobs_seen(), 1u);
}

// The row of the loss stays, and every later start folds it; jobs after the loss are not affected.
TEST_F(ShellTest, ALossIsInTheLedgerForEver) {
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(trace_.wait_for("reply 0000000000001"));
  struct Seen {
    std::vector<JobId> lost;
    Lineage lineage;
  };
  const auto seen = [this] {
    std::promise<Seen> promise;
    EXPECT_TRUE(shell_->read([&](const View& view) {
      Seen now{.lost = {}, .lineage = view.ledger.lineage};
      for (const auto& [id, job] : view.ledger.jobs) {
        if (job.attempts_lost > 0) now.lost.push_back(id);
      }
      promise.set_value(std::move(now));
    }));
    return promise.get_future().get();
  };
  make_again();
  EXPECT_EQ(seen().lost, std::vector<JobId>());
  EXPECT_EQ(seen().lineage, Lineage());
  std::uint64_t generation = 0;
  for (const std::optional<std::uint64_t> rows :
       {std::optional<std::uint64_t>(3), std::optional<std::uint64_t>()}) {
    const Epoch before = started_.epoch;
    lost_ = core::LostEnd{.rows = rows};
    make_again();
    EXPECT_EQ(started_.epoch, Epoch(before.value + 1));
    EXPECT_EQ(seen().lost, std::vector{JobId("0000000000001")});
    EXPECT_EQ(seen().lineage, (Lineage{.generation = ++generation, .id = "lineage"}));
  }
  lost_.reset();
  ASSERT_TRUE(submit("0000000000002", "two"));
  ASSERT_TRUE(trace_.wait_for("reply 0000000000002"));
  for (int start = 0; start < 4; ++start) make_again();  // superseded rows go
  EXPECT_EQ(seen().lost, std::vector{JobId("0000000000001")});
  EXPECT_EQ(seen().lineage.generation, generation);
}

// Regression: 4,000 jobs that became placeable at once were placed in one batch, and nobody was
// answered for 8.6 s.
TEST_F(ShellTest, ABatchPlaces64JobsAndTheNextGoesOn) {
  constexpr int kJobs = 150;
  for (int i = 1; i <= kJobs; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_TRUE(submit(std::string(13 - text.size(), '0') + text, "job" + text));
  }
  v1::Inventory inventory;
  inventory.set_address("127.0.0.1");
  for (std::uint32_t id = 0; id < kJobs; ++id) {
    inventory.add_devices()->set_id(id);
    inventory.mutable_devices(static_cast<int>(id))->set_type("cpu");
  }
  shell_->report_and_observe(core::RegisterNode{.node = NodeName("n0"),
                                                .instance = InstanceId("i1"),
                                                .boot_id = BootId("b1"),
                                                .inventory = inventory,
                                                .version = "test"},
                             core::Connected{.node = NodeName("n0"),
                                             .connection = ConnectionId(1),
                                             .instance = InstanceId("i1"),
                                             .present = {},
                                             .boot_id = BootId("b1")},
                             shell_->now(), [](const Outcome&, const View&) {});
  EXPECT_TRUE(trace_.wait_for("placed 22")) << "the last of them";
  std::vector<std::string> placed;
  for (const std::string& line : trace_.lines()) {
    if (line.starts_with("placed ")) placed.push_back(line);
  }
  EXPECT_EQ(placed, (std::vector<std::string>{"placed 64", "placed 64", "placed 22"}));
}

// There is a node, and one job with one rank runs on it.
class ShellWithAJob : public ShellTest {
 protected:
  static constexpr const char* kJob = "0000000000001";
  void SetUp() override {
    attach();
    EXPECT_TRUE(submit(kJob, "one"));
    EXPECT_TRUE(trace_.wait_for("reply 0000000000001"));
  }
  void attach() {
    v1::Inventory inventory;
    inventory.set_address("127.0.0.1");
    inventory.add_devices()->set_type("cpu");
    std::promise<void> done;
    shell_->report_and_observe(core::RegisterNode{.node = kNode,
                                                  .instance = InstanceId("i1"),
                                                  .boot_id = BootId("b1"),
                                                  .inventory = inventory,
                                                  .version = "test"},
                               core::Connected{.node = kNode,
                                               .connection = ConnectionId(1),
                                               .instance = InstanceId("i1"),
                                               .present = {},
                                               .boot_id = BootId("b1")},
                               shell_->now(),
                               [&](const Outcome&, const View&) { done.set_value(); });
    ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  }
  // Reports a fact of attempt 1, and waits for the answer.
  void report(v1::Fact fact, Now arrived) {
    fact.set_job_id(kJob);
    fact.set_attempt(1);
    std::promise<void> done;
    shell_->report(
        core::ReportFact{.node = kNode, .instance = InstanceId("i1"), .fact = std::move(fact)},
        arrived, [&done](const Outcome&, const View&) { done.set_value(); });
    ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  }
  core::JobRecord job() {
    std::promise<core::JobRecord> seen;
    EXPECT_TRUE(
        shell_->read([&](const View& view) { seen.set_value(view.ledger.jobs.at(JobId(kJob))); }));
    return seen.get_future().get();
  }
  std::size_t devices_reserved() {
    std::promise<std::size_t> seen;
    EXPECT_TRUE(shell_->read(
        [&](const View& view) { seen.set_value(view.ledger.indexes.device_holders.size()); }));
    return seen.get_future().get();
  }
  const NodeName kNode{"n1"};
};

// The incident's "detected" is the arrival time of the report, however long the disk was busy then.
TEST_F(ShellWithAJob, AFaultIsDetectedWhenItsWordArrives) {
  Now arrived = shell_->now();
  arrived.wall -= std::chrono::seconds(7);
  v1::Fact fact;
  fact.mutable_exited()->set_signal(9);
  fact.mutable_exited()->set_code(-1);
  report(std::move(fact), arrived);
  const core::JobRecord seen = job();
  ASSERT_EQ(seen.phase, core::JobPhase::Draining);
  EXPECT_EQ(seen.current()->detected_at, arrived.wall);
  EXPECT_GT(seen.current()->broke_at, arrived.wall);
}

// A row that makes no sense, as a broken build may have written it. The job is stopped like any
// other job, and all answers show the reason. Its device is free once the node has swept it, also
// at the next start.
TEST_F(ShellWithAJob, AnUnreadableJobIsStoppedAndGivesItsDevicesBack) {
  shell_->stop();
  shell_.reset();
  const core::Event nonsense{
      .at = system_clock().now().wall,
      .body = core::CaughtUp{.job = JobId(kJob), .attempt = AttemptNo(9), .step = 1}};
  const journal::Row row{.index = JournalIndex(journal_->last().value + 1), .event = nonsense};
  ASSERT_TRUE(journal_->append({&row, 1}));
  make();
  ASSERT_TRUE(started_.unreadable.contains(JobId(kJob)));
  core::JobRecord seen = job();
  EXPECT_EQ(seen.phase, core::JobPhase::Draining);
  EXPECT_NE(seen.cancel_reason.find("makes no sense: attempt 9 was never placed"),
            std::string::npos)
      << seen.cancel_reason;
  EXPECT_EQ(devices_reserved(), 1u);
  const std::vector<core::Assignment> orders = [this] {
    std::promise<std::vector<core::Assignment>> found;
    EXPECT_TRUE(shell_->read(
        [&](const View& view) { found.set_value(core::desired(view.ledger, kNode)); }));
    return found.get_future().get();
  }();
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].want, core::Want::Stop);

  attach();
  v1::Fact fact;
  fact.mutable_swept()->set_why(v1::SWEPT_WHY_STOPPED);
  report(std::move(fact), shell_->now());
  EXPECT_EQ(job().phase, core::JobPhase::Cancelled);
  EXPECT_EQ(devices_reserved(), 0u);

  const std::uint64_t end = shell_->durable().value;
  make_again();
  EXPECT_EQ(job().phase, core::JobPhase::Cancelled);
  EXPECT_EQ(devices_reserved(), 0u);
  EXPECT_EQ(started_.index.value, end + 1) << "cancelled once";
}

TEST_F(ShellTest, StopServesWhatIsInTheInbox) {
  journal_->hold();
  for (int i = 1; i < 10; ++i)
    ASSERT_TRUE(submit("000000000000" + std::to_string(i), "job" + std::to_string(i)));
  std::thread stopping([this] { shell_->stop(); });
  journal_->let_go();
  stopping.join();
  const auto lines = trace_.lines();
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const std::string& line) { return line.starts_with("reply"); }),
            9);
}

TEST_F(ShellTest, AWatcherFitsBehindTheHistoryWithoutAHole) {
  ASSERT_TRUE(submit("0000000000001", "one"));
  std::promise<std::size_t> history;
  ASSERT_TRUE(shell_->read([&](const View& view) {
    ASSERT_TRUE(
        shell_->add_watcher(std::make_shared<TracingWatcher>(trace_), JobId("0000000000001")));
    history.set_value(view.history.of_job(JobId("0000000000001"), JournalIndex(0)).size());
  }));
  // Taken at the release of its batch: the events of that batch are in the history, and later ones
  // go to the watcher.
  EXPECT_EQ(history.get_future().get(), 1u);
  ASSERT_TRUE(submit("0000000000002", "two"));
  ASSERT_TRUE(shell_->submit(core::CancelJob{.job = JobId("0000000000001")}, shell_->now(),
                             [](const Outcome&, const View&) {}));
  ASSERT_TRUE(trace_.wait_for("event job-ended")) << testing::PrintToString(trace_.lines());
  const auto lines = trace_.lines();
  // neither the first event again, nor another job's
  EXPECT_EQ(std::ranges::count(lines, "event job-submitted"), 0);
}

// Regression: one user's ten thousand watchers left nobody else a place.
TEST_F(ShellTest, AUserHasAShareOfTheWatchers) {
  std::promise<std::vector<std::string>> answers;
  ASSERT_TRUE(shell_->read([&](const View&) {
    std::vector<std::string> outcomes;
    const auto add = [&](const std::string& user) {
      const auto watcher = std::make_shared<TracingWatcher>(trace_);
      const auto added = shell_->add_watcher(watcher, JobId(), user);
      outcomes.push_back(added ? "added" : added.error().message);
      return watcher;
    };
    const auto first = add("ann");
    add("ann");
    add("ann");
    add("bob");
    for (int i = 0; i < 3; ++i) add("");
    shell_->remove_watcher(first.get());
    answers.set_value(outcomes);
  }));
  const std::string full =
      "user 'ann' has 2 watchers, as many as one user may have; end some of them";
  EXPECT_EQ(answers.get_future().get(),
            (std::vector<std::string>{"added", "added", full, "added", "added", "added", "added"}));
  // The watcher is removed by a task of the strand, and a read may come before it.
  std::promise<void> removed;
  shell_->strand().post("removed", [&] { removed.set_value(); });
  removed.get_future().get();
  std::promise<bool> room;
  ASSERT_TRUE(shell_->read([&](const View&) {
    room.set_value(
        shell_->add_watcher(std::make_shared<TracingWatcher>(trace_), JobId(), "ann").has_value());
  }));
  EXPECT_TRUE(room.get_future().get()) << "one of its watchers is gone";
}

// Regression: every heartbeat was an item of its own, and while the disk hung nothing removed them.
// An hour of a thousand agents was millions of items.
TEST_F(ShellTest, OfEachConnectionsHeartbeatsOneWaits) {
  journal_->hold();
  ASSERT_TRUE(submit("0000000000001", "one"));
  ASSERT_TRUE(journal_->wait_for_append(2));
  for (std::uint64_t number = 1; number <= 1'000; ++number) {
    for (const std::uint64_t connection : {1U, 2U}) {
      core::HeartbeatHeard heard{.node = NodeName("n" + std::to_string(connection)),
                                 .connection = ConnectionId(connection),
                                 .heartbeat = {}};
      heard.heartbeat.set_number(connection * 10'000 + number);
      shell_->observe(heard, shell_->now());
      shell_->observe(core::HeartbeatAcked{.node = heard.node, .connection = heard.connection},
                      shell_->now());
    }
  }
  ASSERT_TRUE(shell_->read([this](const View&) { trace_.add("read"); }));
  journal_->let_go();
  ASSERT_TRUE(trace_.wait_for("read"));
  std::vector<std::string> heartbeats;
  for (const std::string& line : trace_.lines()) {
    if (line.starts_with("heartbeat")) heartbeats.push_back(line);
  }
  EXPECT_EQ(heartbeats, (std::vector<std::string>{"heartbeat 11000", "heartbeat 21000"}));
}

}  // namespace
}  // namespace muster::controller
