// A simulated controller around the real core. World owns it. It runs on its history's one thread.
//
// The real core::turn() and core::Horizon do a batch's work, and the real core::Peers and
// core::SendQueue decide about streams. This model has the wiring of the shell and of the hub: an
// inbox, ONE append and sync a turn, release together. The process may die between any two of these
// steps. The content of this object dies with the process; the journal does not.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "controller/core/horizon.h"
#include "controller/core/peers.h"
#include "controller/core/send_queue.h"
#include "controller/core/turn.h"
#include "tests/sim/disk_journal.h"
#include "tests/sim/mutant.h"
#include "tests/sim/network.h"
#include "tests/sim/timeline.h"

namespace muster::sim {

class World;

inline constexpr Duration kHeartbeatInterval = std::chrono::seconds(1);

enum class CrashPoint { None, BeforeSync, InSync, AfterSync };

class ControllerModel : public Actor, private core::TurnWatcher {
 public:
  explicit ControllerModel(World& world);

  void launch();
  void crash();
  void pause() { hold(); }
  void resume() { let_go(); }
  void crash_in_batch(CrashPoint where) { crash_point_ = where; }
  void slow_disk_until(Time until) { slow_until_ = until; }
  void jump_wall_clock(Time by) { wall_offset_ += by; }
  // Call this while it is dead: the journal loses up to so many rows of its end, and the next start
  // accepts the loss. Returns false if the journal has no end to lose.
  enum class JournalLoss { NewestHead, OldHead, WholeCopy };  // as in DiskJournal
  bool lose_journal_end(JournalLoss loss, std::size_t rows);
  [[nodiscard]] bool listening() const { return alive() && listening_; }
  // Ahead of what is durable by at most one batch.
  [[nodiscard]] const core::Ledger& ledger() const { return state_.ledger; }
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
  using Reply = std::function<void(const core::Answer&)>;
  void ask(core::Input input, Reply reply);

 private:
  struct Stream {  // that Peers accepted
    LinkPtr link;
    core::SendQueue queue = {};
    bool writing = false;
  };
  [[nodiscard]] Now clocks() const;
  // What waits for a turn: something for the core, or a read of durable state.
  struct Item {
    core::TurnItem core = {};
    Reply reply = {};                 // of an input; may be empty
    Mutant too_early = Mutant::None;  // the one by which the reply leaves before the sync
    Deed read = {};                   // not empty: then the others are not used
  };
  void ask_core(core::Input input, Reply reply, Mutant too_early,
                std::optional<core::Observation> then = {});
  void observe(core::Observation observation);
  void read(Deed deed);
  void put(Item item);
  void wake();
  void run_batch();
  void begin_sync();
  void synced();
  void release();
  void before(const core::Row& row, const core::Ledger& ledger) override;
  void after(const core::Row& row, const core::Ledger& ledger) override;
  [[nodiscard]] core::Peers::View durable() const;
  void judge(const LinkPtr& link, const v1::Hello& hello, Now arrived);
  void judge_twin(const Machine& machine, const v1::Hello& hello, ConnectionId connection,
                  Now arrived);
  void twin_registered(const core::Peers::Stream& stream, const std::optional<Error>& refusal);
  void registered(const LinkPtr& link, const std::optional<Error>& refusal);
  void refuse(const LinkPtr& link, const Error& why);
  static std::string kind_of(const Error& refusal);
  void end_stream(const core::Peers::Stream& stream);
  void gone(const LinkPtr& link);
  void facts(const LinkPtr& link, const v1::Facts& facts);
  void acknowledge(const LinkPtr& link, const InstanceId& instance, const v1::Facts& facts);
  void heartbeat(const LinkPtr& link, const std::shared_ptr<const v1::ConnectRequest>& message);
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
  // Nothing of the node runs, and nothing that is ordered can start.
  [[nodiscard]] bool runs_nothing(const NodeName& node) const;

  World& world_;
  core::Limits limits_;
  DiskJournal journal_;
  Time boot_origin_, wall_offset_ = 0, slow_until_ = 0;
  CrashPoint crash_point_ = CrashPoint::None;
  std::set<NodeName> unknown_since_loss_;  // that the journal knew before
  // --- of this incarnation only
  // -------------------------------------------------------------------
  core::State state_;
  core::Horizon horizon_{{}};
  bool listening_ = false, batch_running_ = false, woken_ = false;
  // An agent was sent more than this journal has: nothing of this batch leaves.
  std::optional<std::uint64_t> behind_;  // the generation that an agent has seen
  core::Peers peers_{kHeartbeatInterval};
  std::deque<Item> inbox_;
  // Of this batch.
  core::Turned turned_;
  std::vector<Reply> replies_;  // of the turn's inputs
  std::vector<Deed> reads_;
  std::uint64_t timer_ = 0, orders_sent_ = 0;
  std::map<ConnectionId, Stream> streams_;
  std::map<ConnectionId, InstanceId> spoken_for_;  // by the Hello of a connection
};

}  // namespace muster::sim
