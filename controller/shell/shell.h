// The Shell owns the core's State and the History, and runs core::turn() in batches. run() in
// main.cc owns the Shell. Its own strand does the work; the journal's thread does the disk writes.
//
// A batch:
//
//     1 drain the inbox (bounded) into one turn
//     2 one append and sync, on the journal's thread; one batch is in flight, the inbox collects
//       meanwhile
//     3 release, in this order: orders (Listener), watch events, replies, reads
//
// Nothing leaves before its batch is durable, reads included. A batch without events is released at
// once. No second batch is applied while one is in flight, so at release the whole ledger is
// durable.
//
// An item carries its arrival time, stamped by the code that received it. core::Horizon says until
// when deadlines are judged, so that neither a slow disk nor a starved controller makes a node seem
// silent. The shell owns the only timer (Turned::wake_at).
//
// Heartbeats arrive whether or not a batch is in flight. Of each connection at most one waits. A
// newer one merges with it and takes its position, so that the inbox does not grow while the disk
// hangs.
//
// While paused, the shell accepts, proposes and appends nothing. It refuses every input with the
// reason. Reads and observations continue.
//
// Start: construct, start() (load, fold, ControllerStarted), listen somewhere, open(). Stop: end
// all calls first, then stop(): what is in the inbox is still served. kill -9 is a normal way to
// stop.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "controller/core/horizon.h"
#include "controller/core/turn.h"
#include "controller/shell/view.h"

namespace muster::controller {

class Shell {
 public:
  struct Options {
    core::Limits limits;
    std::string version;
    ClusterId new_cluster;  // used by the first start of a state directory
    // Called after the load. Nothing, or no function: no loss of the journal's end was accepted.
    std::function<std::optional<core::LostEnd>()> lost;
    std::string lineage_id;  // random, used if the journal's end was lost
    // Called after the load: the reason to start paused, without a row for this start. Empty, or no
    // function: not paused.
    std::function<std::string()> paused;
    // Makes the public form of an event; `after` is the ledger with the event applied. Pure.
    std::function<v1::Event(const journal::Row&, const core::Ledger& after)> describe;
    // Called once, on the strand, if the journal fails: nothing may be released any more. The
    // daemon ends itself.
    std::function<void(const Error&)> on_fatal;
    std::size_t batch_max = 4'096;
    // The bound for clients' inputs and reads. Agents' facts are bounded by their run directories.
    std::size_t inbox_max = 100'000;
    std::size_t watchers_max = 10'000;
    std::size_t watchers_share = 1'250;  // of these, for one user
    std::size_t rounds_max = 64;         // of propose in one batch
    Duration stall_after = std::chrono::milliseconds(100);
    Duration stall_wait_max = std::chrono::seconds(1);
  };

  Shell(journal::Journal& journal, const Clock& clock, Options options);
  ~Shell();

  // Call start() before anything else. It runs on the caller's thread.
  struct Started {
    Epoch epoch;
    ClusterId cluster;
    JournalIndex index;
    JournalIndex loaded;  // the journal's last index before this start
    std::size_t jobs = 0;
    // The unreadable jobs, and why. This start cancels those that had not ended.
    std::map<JobId, std::string> unreadable;
    std::string paused;
  };
  Result<Started> start();
  // Only between start() and the first input.
  [[nodiscard]] const core::Ledger& started_ledger() const MUSTER_REQUIRES(strand_) {
    return state_.ledger;
  }
  // Call it before the first input. The listener must outlive stop().
  void set_listener(Listener* listener) {
    strand_.assert_idle();
    listener_ = listener;
  }
  // From here on, silence is judged and jobs are placed.
  void open();
  void stop();

  // --- any thread --------------------------------------------------------------------------------
  [[nodiscard]] Now now() const { return clock_.now(); }
  // False: the inbox is full (clients); the input was not taken.
  [[nodiscard]] bool submit(core::Input input, Now arrived, ReplyFn reply);
  void report(core::Input input, Now arrived, ReplyFn reply);  // from agents: never refused
  // `then` is observed directly after the input, in the same batch and before it proposes. It is
  // not observed if the input was refused.
  void report_and_observe(core::Input input, core::Observation then, Now arrived, ReplyFn reply);
  void observe(core::Observation observation, Now arrived);
  [[nodiscard]] bool read(ReadFn read);  // clients: refused as in submit
  void read_always(ReadFn read);         // the controller's own links: never refused
  // On the journal's thread, between appends. `work` must be short.
  void with_journal(const char* name, std::move_only_function<void(journal::Journal&)> work);
  // Runs on a thread that nothing else waits for, after all work that the journal's thread was
  // given before. For Journal::archived() and archived_job().
  void with_archive(const char* name, std::move_only_function<void(journal::Journal&)> work);
  void remove_watcher(const Watcher* watcher);
  [[nodiscard]] async::Loop& strand() MUSTER_RETURN_CAPABILITY(strand_) { return strand_; }
  [[nodiscard]] JournalIndex durable() const {
    return JournalIndex(durable_.load(std::memory_order_acquire));
  }

  // --- strand only, inside a reply or a read -----------------------------------------------------
  // The history until then and the events after that fit together without a gap.
  // ResourceExhausted: there are too many watchers, or too many of this user. `user` empty: the
  // unix socket, whose user has no share. `job` empty: events of all jobs.
  Result<void> add_watcher(std::shared_ptr<Watcher> watcher, const JobId& job,
                           const std::string& user = {});
  // Strand only, inside a read. The pause lasts until the process ends.
  void pause(std::string why);

 private:
  struct InputItem {
    core::Asked asked;
    ReplyFn reply;
  };
  using HeartbeatSlot = std::tuple<NodeName, ConnectionId, bool>;  // bool: a HeartbeatAcked
  struct Item {
    // Arrival of the first item that shares this position. Deadlines are not judged beyond it.
    Now arrived;
    Now heard{};  // arrival of the last of them
    std::variant<InputItem, core::Observation, ReadFn> what;
    bool bounded = false;
  };
  struct Batch {
    std::vector<core::TurnItem> items;
    std::vector<ReplyFn> replies;  // of the inputs among the items, one each; may be empty
    std::vector<ReadFn> reads;
    core::Turned turned;
    std::vector<EventPtr> events;  // of the turn's rows, one each
    [[nodiscard]] const std::vector<journal::Row>& rows() const { return turned.rows; }
  };

  bool push(Item item, bool bounded);
  // Nothing: it is no heartbeat.
  static std::optional<HeartbeatSlot> heartbeat_slot(const Item& item);
  bool replace_heartbeat(Item& item, const HeartbeatSlot& slot) MUSTER_REQUIRES(mutex_);
  void turn();  // on the strand, as what follows
  std::vector<Item> drain(std::optional<BootTime>& first_left) MUSTER_REQUIRES(strand_);
  static void sort_into(Batch& batch, Item item);
  void run(Batch& batch, bool any, const std::optional<BootTime>& first_left)
      MUSTER_REQUIRES(strand_);
  void tell_readings(const Batch& batch) MUSTER_REQUIRES(strand_);
  void append(std::shared_ptr<Batch> batch) MUSTER_REQUIRES(strand_);
  void release(Batch& batch) MUSTER_REQUIRES(strand_);
  void tell_watchers(const Batch& batch, const View& view) MUSTER_REQUIRES(strand_);
  void archive_next() MUSTER_REQUIRES(strand_);
  void arm(BootTime wake_at) MUSTER_REQUIRES(strand_);
  void idle() MUSTER_REQUIRES(strand_);
  [[nodiscard]] View view() const MUSTER_REQUIRES(strand_) {
    return {state_.ledger, state_.presence, history_, options_.limits, now_, paused_};
  }

  journal::Journal& journal_;
  const Clock& clock_;
  Options options_;
  Listener* listener_ MUSTER_GUARDED_BY(strand_) = nullptr;

  Mutex mutex_;
  std::deque<Item> inbox_ MUSTER_GUARDED_BY(mutex_);
  std::map<HeartbeatSlot, Item*> waiting_heartbeats_ MUSTER_GUARDED_BY(mutex_);  // of the inbox
  bool scheduled_ MUSTER_GUARDED_BY(mutex_) = false;
  // Items in the inbox that count against inbox_max.
  std::size_t bounded_ MUSTER_GUARDED_BY(mutex_) = 0;

  core::State state_ MUSTER_GUARDED_BY(strand_);
  History history_ MUSTER_GUARDED_BY(strand_);
  Now now_ MUSTER_GUARDED_BY(strand_){};    // of the running batch
  std::atomic<std::uint64_t> durable_ = 0;  // written on the strand
  bool open_ MUSTER_GUARDED_BY(strand_) = false, in_flight_ MUSTER_GUARDED_BY(strand_) = false;
  bool failed_ MUSTER_GUARDED_BY(strand_) = false;
  std::string paused_ MUSTER_GUARDED_BY(strand_);  // the reason; empty: not paused
  bool wants_propose_ MUSTER_GUARDED_BY(strand_) = false;
  core::Horizon horizon_ MUSTER_GUARDED_BY(strand_);  // also knows for when the timer is armed
  // Batches of only heartbeats do not propose before this time: propose must not use up the core.
  BootTime heartbeat_propose_at_ MUSTER_GUARDED_BY(strand_){};
  std::deque<JobId> archive_ MUSTER_GUARDED_BY(strand_);
  bool archiving_ MUSTER_GUARDED_BY(strand_) = false;
  std::move_only_function<void()> on_idle_ MUSTER_GUARDED_BY(strand_);  // set while stopping
  struct Watching {
    std::shared_ptr<Watcher> watcher;
    JobId job;
    std::string user;
  };
  std::unordered_map<const Watcher*, Watching> watchers_ MUSTER_GUARDED_BY(strand_);
  std::unordered_multimap<JobId, Watcher*> by_job_ MUSTER_GUARDED_BY(strand_);
  std::vector<Watcher*> watching_all_ MUSTER_GUARDED_BY(strand_);
  std::map<std::string, std::size_t> watchers_of_ MUSTER_GUARDED_BY(strand_);  // by user

  bool stopped_ = false;  // used by the stopping thread

  async::Loop strand_{"shell"};
  async::Loop disk_{"journal"};
  async::Loop archive_reads_{"archive"};
  std::unique_ptr<async::Timer> timer_ MUSTER_GUARDED_BY(strand_);
};

}  // namespace muster::controller
