// A simulated controller around the real core. World owns it. It runs on its history's one thread.
//
// The real core::Peers and core::SendQueue decide about streams; this model has the hub's wiring.
// It models the shell's batch: decide, apply, propose to a fixed point, ONE append and sync,
// release together. The process may die between any two of these steps. The content of this object
// dies with the process; the journal does not.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "controller/core/peers.h"
#include "controller/core/send_queue.h"
#include "tests/sim/disk_journal.h"
#include "tests/sim/network.h"
#include "tests/sim/timeline.h"

namespace muster::sim {

class World;

inline constexpr Duration kHeartbeatInterval = std::chrono::seconds(1);

enum class CrashPoint { None, BeforeSync, InSync, AfterSync };

class ControllerModel : public Actor {
 public:
  explicit ControllerModel(World& world);

  void launch();
  void crash();
  void pause() { hold(); }
  void resume() { let_go(); }
  void crash_in_batch(CrashPoint where) { crash_point_ = where; }
  void slow_disk_until(Time until) { slow_until_ = until; }
  void jump_wall_clock(Time by) { wall_offset_ += by; }
  // Call this while it is dead: somebody restores an older copy of the journal, and the next start
  // accepts the loss. Returns false if the journal has no end to lose.
  bool lose_journal_end(std::size_t rows);
  // The same with the whole directory, so that nobody notices that anything is missing.
  bool put_back_copy(std::size_t rows);
  [[nodiscard]] bool listening() const { return alive() && listening_; }
  // Ahead of what is durable by at most one batch.
  [[nodiscard]] const core::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const DiskJournal& journal() const { return journal_; }
  [[nodiscard]] const core::Limits& limits() const { return limits_; }
  [[nodiscard]] std::string why(const core::JobRecord& job) const;  // as `muster why` shows it

  // --- from agents: called when a message arrives ------------------------------------------------
  void receive(const LinkPtr& link, const std::shared_ptr<const v1::ConnectRequest>& message);
  void link_closed(const LinkPtr& link);
  // An agent with this machine's name on another machine, without a run of its own. When it may
  // have the name, it keeps the name for a while. When it is ordered to stop something, it reports
  // that nothing of it is there.
  void twin_says_hello(const Machine& machine, ConnectionId connection);
  void logs_pushed(Machine& machine, const agent::RunKey& run);
  // --- from clients: `reply` leaves with the batch, and may get lost -----------------------------
  using Reply = std::function<void(const core::Decision&)>;
  void ask(core::Input input, Reply reply);

 private:
  struct Stream {  // that Peers accepted
    LinkPtr link;
    core::SendQueue queue = {};
    bool writing = false;
  };
  [[nodiscard]] Now clocks() const;
  void put(Deed item);
  void wake();
  void run_batch();
  void settle();
  void begin_sync(bool more);
  void synced();
  void release();
  core::Decision take(const core::Input& input);
  void accept(core::EventBody body);
  void fold(core::Ledger& ledger, JournalIndex index, const core::Event& event) const;
  void break_by_mutant();
  void forget_what_ends_mean(core::Decision& decision) const;
  void break_starts(core::EventBody& body) const;
  [[nodiscard]] bool ignored_by_mutant(const core::Input& input) const;
  [[nodiscard]] core::Peers::View durable() const;
  void judge(const LinkPtr& link, v1::Hello hello, Now arrived);
  void registered(const LinkPtr& link, const std::optional<Error>& refusal);
  void refuse(const LinkPtr& link, const Error& why);
  static std::string kind_of(const Error& refusal);
  void end_stream(const core::Peers::Stream& stream);
  void gone(const LinkPtr& link);
  void facts(const LinkPtr& link, const v1::Facts& facts);
  void heartbeat(const LinkPtr& link, const std::shared_ptr<const v1::ConnectRequest>& message,
                 Now arrived);
  void believe_every_checkpoint();
  void send_orders(const NodeName& node, bool always);
  template <class Message>
  void send(ConnectionId connection, Message message);
  void write_next(ConnectionId connection);
  void fill(v1::NodeLaunch& launch, const core::JobRecord& job, const core::AttemptRecord& attempt,
            const core::NodePart& part) const;
  void replay();
  void check_replay();
  void die(CrashPoint where);
  void end_behind();

  World& world_;
  core::Limits limits_;
  DiskJournal journal_;
  Time boot_origin_, wall_offset_ = 0, slow_until_ = 0;
  CrashPoint crash_point_ = CrashPoint::None;
  // --- of this incarnation only
  // -------------------------------------------------------------------
  core::Ledger ledger_;
  core::Presence presence_;
  bool listening_ = false, batch_running_ = false, woken_ = false;
  // An agent was sent more than this journal has: nothing of this batch leaves.
  bool behind_ = false;
  core::Peers peers_{kHeartbeatInterval};
  std::vector<Deed> inbox_, release_, reads_;
  std::vector<journal::Row> batch_, synced_;  // the rows of this batch, and of its release
  WallTime batch_at_{};
  std::uint64_t timer_ = 0, orders_sent_ = 0;
  std::map<ConnectionId, Stream> streams_;
  std::map<ConnectionId, InstanceId> spoken_for_;  // by the Hello of a connection
  std::optional<BootTime> wake_at_;
  std::optional<core::QueueCursor> placing_goes_on_;
};

}  // namespace muster::sim
