// Passes every change to every invariant, keeps the book, and counts the phase transitions. World
// owns the Watch. It runs on its history's one thread.
//
// The first broken invariant ends the history.
#pragma once

#include "tests/sim/book.h"
#include "tests/sim/invariant.h"

namespace muster::sim {

struct Violation {
  std::string invariant;
  std::string text;
  Time at = 0;
};

class Watch {
 public:
  explicit Watch(World& world);

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  void report(std::string_view invariant, std::string text);
  [[nodiscard]] const Book& book() const { return book_; }
  [[nodiscard]] std::vector<std::string_view> names() const;

  // --- hooks, as in Invariant --------------------------------------------------------------------
  void exec(const Machine& machine, const Process& process);
  void died(const Machine& machine, const Process& process, std::int32_t code, std::int32_t signal,
            DeathCause cause);
  void stepped(const Machine& machine, const agent::RunKey& run, std::uint32_t rank,
               std::int64_t step);
  void stopping(const Machine& machine, const agent::RunKey& run);
  void sweeping(const Machine& machine, const agent::RunKey& run);
  void orphaned(const Machine& machine, const agent::RunKey& run, bool had_lease);
  void uploading(const Machine& machine, const UploadTask& task);
  void uploaded(const Machine& machine, const UploadTask& task);  // without a problem
  void fact_sent(const Machine& machine, const v1::Fact& fact);
  void state_replaced(const Machine& machine);
  void orders_taken(const Machine& machine, const v1::Orders& orders, std::uint64_t order);
  void accepted(const core::Event& event, const core::Ledger& before);
  void folded(const core::Event& event, const core::Ledger& after);
  void synced(const std::vector<journal::Row>& rows);
  void replayed(const core::Ledger& ledger);
  void replied(const RequestId& request, const JobId& job);
  void acknowledged(const NodeName& node, const InstanceId& instance, const v1::Fact& fact);
  void ordered(const NodeName& node, const v1::Orders& orders);
  void heartbeat_acknowledged(const NodeName& node);
  void finish();
  // --- reported by the harness itself
  // --------------------------------------------------------------
  void replay_differs(const std::string& live, const std::string& replayed);
  void fell_behind(const std::string& what) { report("journal-not-behind", what); }
  void restless() {
    report("propose-settles", "propose() found something new 32 times in one batch");
  }
  void struck(const NodeName& node);
  void harmed(const agent::RunKey& run) { book_.attempts[run].harmed = true; }
  void journal_end_lost(const std::vector<journal::Row>& left);
  void cancel_asked(const JobId& job) { book_.cancel_asked.insert(job); }

 private:
  World& world_;
  Book book_;
  std::vector<std::unique_ptr<Invariant>> all_;
  std::optional<Violation> violation_;
  std::optional<std::pair<JobId, core::JobPhase>> phase_before_;
};

}  // namespace muster::sim
