// A whole controller in memory: the real core, a journal that is a vector, a clock that a script
// moves, and agents that only send heartbeats. main() of muster-scenarios makes one World for each
// file. It runs on that program's one thread.
//
// Every input is a turn of the core, as in the shell. After it, a replay of the journal must give
// the same ledger.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/core/peers.h"
#include "controller/core/turn.h"

namespace muster::scenarios {

struct Agent {
  std::string instance, boot;
  v1::Inventory inventory;
  ConnectionId connection;  // 0: not connected
  bool heartbeats = false;  // connected, and sends a heartbeat each second
  std::vector<v1::PresentAttempt> present;
};

class World : private core::TurnWatcher {
 public:
  World();

  // Decides, applies and settles one input; writes the results to the trace. `then` is as in Asked.
  core::Answer put(const core::Input& input, std::optional<core::Observation> then = {});
  void see(const core::Observation& observation);
  // Moves the clock, with every wake-up and every second's heartbeats in between.
  void advance(Duration by);
  // The controller dies and starts again. The replay is what the journal would give, without its
  // last `lost` rows, whose loss is accepted. Then every agent that was connected is connected
  // again.
  void restart(std::size_t lost);
  void hello(const std::string& node);
  void hang_up(const std::string& node);
  // What is put and seen between these two calls is one batch: nothing is proposed before its end.
  void begin_batch() { in_batch_ = true; }
  void end_batch();

  void say(const std::string& line) { trace_ += line + "\n"; }
  std::string take_trace();

  [[nodiscard]] const core::Ledger& ledger() const { return state_.ledger; }
  [[nodiscard]] const core::Presence& presence() const { return state_.presence; }
  [[nodiscard]] Now now() const { return now_; }
  core::Limits limits;
  std::map<std::string, Agent> agents;
  std::map<std::string, JobId> jobs;     // the latest of each name
  std::vector<core::ChainedJob> stages;  // of the chain that will be submitted
  std::uint32_t next_job = 1;

 private:
  core::Turned turn(std::span<const core::TurnItem> items, bool judge);
  void start(std::uint64_t lost);
  void before(const core::Row& row, const core::Ledger& ledger) override;
  void after(const core::Row& row, const core::Ledger& ledger) override;
  void settle();
  [[nodiscard]] core::Peers::View view() const;
  void end_streams(std::span<const core::Row> rows);
  void tell_orders();
  [[nodiscard]] std::vector<core::AttemptKey> kept_for_their_logs(const NodeName& node,
                                                                  const Agent& agent) const;
  void check_replay() const;
  void stamp();

  core::State state_;
  core::Peers peers_;
  Now now_;
  BootTime stamped_at_;
  std::optional<BootTime> wake_at_;
  std::uint64_t next_connection_ = 1;
  std::vector<core::Row> journal_;
  std::optional<core::JobPhase> phase_before_;  // of the job of the row that is being applied
  // Journal rows at the last check: the ledger changes only with events, and orders only with these
  // and with streams.
  std::size_t checked_ = 0;
  // The newest orders of each node, over its connections.
  std::map<std::string, std::map<core::AttemptKey, core::Want>> orders_;
  std::map<std::string, std::set<std::string>> uploads_;  // by node, as printed
  bool in_batch_ = false;
  std::string trace_;
};

}  // namespace muster::scenarios
