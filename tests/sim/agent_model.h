// A simulated agent around the real agent core. Its Machine owns it. It runs on its history's one
// thread.
//
// It observes its disk and its processes, and calls reconcile(). It performs the actions one effect
// after another, and may die between any two. It reports facts_of(). The content of this object
// dies with the process; the content of the disk does not.
#pragma once

#include <memory>
#include <set>

#include "agent/core/controller_link.h"
#include "agent/core/outbox.h"
#include "tests/sim/machine.h"
#include "tests/sim/network.h"

namespace muster::sim {

class AgentModel : public Actor {
 public:
  AgentModel(World& world, Machine& machine)
      : Actor(world_timeline(world)), world_(world), machine_(machine) {}

  void launch();
  void crash();
  void pause() { hold(); }
  void resume() { let_go(); }
  void poke();  // something in a run directory or the process table changed
  void receive(const LinkPtr& link, std::shared_ptr<const Down> message);
  void link_closed(const LinkPtr& link);
  void last_words(const LinkPtr& link);  // before a stalled stream is given up
  // A frozen worker does not stop its ranks, so the agent kills it when it should have stopped
  // them. Other workers stop their ranks by themselves and need no supervision.
  void check_frozen(const agent::RunKey& run, std::uint64_t worker);
  void crash_after_effects(std::uint64_t effects) { effects_left_ = effects; }

 private:
  static Timeline& world_timeline(World& world);
  [[nodiscard]] std::map<agent::RunKey, agent::RunSeen> observe() const;
  [[nodiscard]] agent::RunSeen observe(const agent::RunKey& run, const RunDir& dir) const;
  [[nodiscard]] std::optional<BootTime> must_obey_by(const agent::RunKey& run) const;
  void note_first_steps();
  void note_clock_skew(Duration ahead);
  void refresh();
  // Returns false if nothing was to be done for the action now.
  bool perform(const agent::Action& action);
  bool perform_one(const agent::StartRun& action);
  bool perform_one(const agent::RefuseRun& action);
  bool perform_one(const agent::SignalStop& action);
  bool perform_one(const agent::SweepRun& action);
  bool perform_one(const agent::MarkSwept& action);
  bool perform_one(const agent::ForgetRun& action);
  void finish_sweep(const agent::RunKey& run, v1::SweptWhy why);
  void stop_what_is_not_mentioned();
  void connect();
  void retry();
  void hello();
  void take(const Down& message);
  void welcome(const LinkPtr& link, const v1::Welcome& welcome);
  [[nodiscard]] std::optional<v1::Orders> ordered() const;
  void send_facts();
  void store_identity();
  void store_identity_later();
  void last_scan(const agent::RunKey& run);
  void heartbeat();
  void obey_uploads(const v1::Orders& orders);
  void upload_next();
  void end_upload(const UploadTask& task, const std::string& problem,
                  const std::vector<agent::RunSeen::Removed>& removed = {});
  void add_reading(v1::Heartbeat& heartbeat, const agent::RunKey& run, const RunDir& dir) const;
  void renew_leases(BootTime from);
  void mark(const agent::RunKey& run, AgentMark mark);

  World& world_;
  Machine& machine_;
  // --- of this incarnation only
  // -------------------------------------------------------------------
  agent::Self self_;
  LinkPtr link_;
  bool welcomed_ = false, poked_ = false, identity_dirty_ = false;
  std::optional<agent::ControllerLink> controller_;
  agent::Outbox outbox_;
  std::optional<v1::Orders> stale_orders_;          // used by the mutant that takes them
  std::map<agent::RunKey, std::uint64_t> spawned_;  // worker's pid; 0: not started yet
  std::set<agent::RunKey> sweeping_;
  std::map<agent::RunKey, BootTime> signalled_;
  std::map<agent::RunKey, bool> scans_;  // of swept runs, for checkpoints; true: done
  struct Upload {
    bool under_way = false;
    std::uint64_t number = 0;  // of the upload that is under way
    std::vector<agent::RunSeen::Removed> remove = {};
  };
  std::map<UploadTask, Upload> uploads_;  // that are wanted, and have not ended
  std::uint64_t last_upload_ = 0;
  std::uint64_t heartbeats_ = 0, unanswered_ = 0, heartbeat_timer_ = 0;
  Time stored_at_ = 0;  // when the last write of the identity is done
  // The sending time of the agent's newest message that the controller has answered.
  BootTime acknowledged_from_{};
  BootTime hello_sent_{};
  Time backoff_ = 0;
  std::set<agent::RunKey> known_before_;  // used by the mutant that forgets its spool
  std::optional<std::uint64_t> effects_left_;
};

}  // namespace muster::sim
