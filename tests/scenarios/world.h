// A whole controller in memory, but for its edges: the real core, a journal that is a vector, a
// clock that a script moves, and agents that only heartbeat. After every input it proposes to a
// fixed
// point as the shell does, and checks that a replay of the journal gives the same ledger.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/core.h"

namespace muster::scenarios {

struct Agent {
  std::string instance, boot;
  v1::Inventory inventory;
  ConnectionId connection;  // 0: not connected
  bool pulsing = false;     // connected and heard each second
  std::vector<v1::PresentAttempt> present;
};

class World {
 public:
  World();

  // Decides, applies and settles one input; what came of it goes to the trace.
  core::Decision put(const core::Input& input);
  void see(const core::Observation& observation);
  // Moves the clock over every wake-up and every second's heartbeats on the way.
  void advance(Duration by);
  // The controller dies and starts again: replay, as the journal would hand it out, but for its
  // last `lost` rows, whose loss is accepted; then every agent that was connected is back.
  void restart(std::size_t lost);
  void hello(const std::string& node);
  void hang_up(const std::string& node);
  // What is put and seen between the two comes in one batch: nothing is proposed before its end.
  void begin_batch() { in_batch_ = true; }
  void end_batch();

  void say(const std::string& line) { trace_ += line + "\n"; }
  std::string take_trace();

  [[nodiscard]] const core::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const core::Presence& presence() const { return presence_; }
  [[nodiscard]] Now now() const { return now_; }
  core::Limits limits;
  std::map<std::string, Agent> agents;
  std::map<std::string, JobId> jobs;  // the latest of each name
  std::vector<v1::JobSpec> stages;    // of the chain that is to be submitted
  std::uint32_t next_job = 1;

 private:
  bool accept(const core::Decision& decision);
  void settle();
  void tell_orders();
  void check_replay() const;
  void stamp();

  core::Ledger ledger_;
  core::Presence presence_;
  Now now_;
  BootTime stamped_at_;
  std::optional<BootTime> wake_at_;
  std::uint64_t next_connection_ = 1;
  std::vector<std::pair<JournalIndex, core::Event>> journal_;
  // journal rows at the last look: orders and ledger change with events alone
  std::size_t checked_ = 0;
  std::map<std::string, std::map<core::AttemptKey, core::Want>> orders_;
  bool in_batch_ = false;
  std::string trace_;
};

}  // namespace muster::scenarios
