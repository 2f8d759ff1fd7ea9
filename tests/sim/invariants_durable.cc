// Nothing is visible before it is durable, and what was visible once is never taken back.
#include <fmt/format.h>

#include <algorithm>

#include "controller/core/model/rebuild.h"
#include "tests/sim/event_text.h"
#include "tests/sim/invariant.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

class DurableBeforeVisible : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "durable-before-visible"; }
  void replied(const RequestId& request, const JobId& job) override {
    if (!world_.watch.book().durable.contains(job))
      broken(fmt::format("request {} was answered with job {}, which is not durable", request.str(),
                         job.str()));
  }
  void acknowledged(const NodeName& node, const InstanceId& instance,
                    const v1::Fact& fact) override {
    const core::Ledger& ledger = world_.controller.ledger();
    const auto job = ledger.jobs.find(JobId(fact.job_id()));
    const core::AttemptRecord* attempt =
        job == ledger.jobs.end() ? nullptr : job->second.attempt(AttemptNo(fact.attempt()));
    const core::NodePart* part = attempt == nullptr ? nullptr : attempt->part(node);
    if (part == nullptr) return;
    // Another instance cannot know what an earlier one ran; it knows only that nothing of it is
    // left.
    if (part->placed.instance != instance && !fact.has_swept()) return;
    if (fact.has_outputs_uploaded() && means_nothing(*attempt, *part, fact.outputs_uploaded()))
      return;
    if (const std::string key = natural_key(node, fact); !world_.watch.book().facts.contains(key))
      broken(fmt::format("'{}' was acknowledged and is not durable", key));
  }
  // A newer one is known, or a later attempt uploads it all.
  static bool means_nothing(const core::AttemptRecord& attempt, const core::NodePart& part,
                            const v1::OutputsUploaded& uploaded) {
    if (!(uploaded.logs() ? part.uploads_logs : part.uploads)) return true;
    if (uploaded.logs() || !uploaded.has_step()) return false;
    return (uploaded.seal() ? attempt.sealed_step : part.sent_step) >= uploaded.step();
  }
  void ordered(const NodeName& node, const v1::Orders& orders) override {
    const Book& book = world_.watch.book();
    for (const v1::Order& order : orders.orders()) {
      const auto job = book.durable.find(JobId(order.job_id()));
      const bool known =
          job != book.durable.end() && job->second.attempts.contains(AttemptNo(order.attempt()));
      const agent::RunKey run{JobId(order.job_id()), AttemptNo(order.attempt())};
      // The directory of an archived job's attempt may go, if the journal had lost that attempt
      // before.
      if (!known && order.has_forget() && book.once_placed.contains(run)) continue;
      if (!known)
        return broken(fmt::format("{} was given an order for {}, whose placement is not durable",
                                  node.str(), describe(run)));
      // A part whose ranks have all ended is swept by a stop where its run directory is gone.
      if (order.has_stop() && !book.is_broken(run) && !book.has_exited(run, node))
        return broken(fmt::format("{} was told to stop {}, whose break is not durable", node.str(),
                                  describe(run)));
      if (order.has_run() && book.is_broken(run))
        return broken(
            fmt::format("{} was told to run {}, which is broken", node.str(), describe(run)));
    }
  }
};

// A submission or a fact that was acknowledged is in every later ledger.
class AckedNeverLost : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "acknowledged-never-lost"; }
  void replayed(const core::Ledger& ledger) override { check(ledger); }
  void finish() override {
    if (world_.controller.listening()) check(world_.controller.ledger());
  }

 private:
  void check(const core::Ledger& ledger) {
    const Book& book = world_.watch.book();
    for (const auto& [request, job] : book.replied) {
      const auto known = ledger.indexes.request_ids.find(request);
      if (known == ledger.indexes.request_ids.end() || known->second != job)
        return broken(
            fmt::format("request {} was answered with job {}; the ledger does not know it",
                        request.str(), job.str()));
      if (!ledger.jobs.contains(job) && !ledger.tombstones.contains(job))
        return broken(fmt::format("job {} was acknowledged and is gone", job.str()));
    }
    std::set<std::string> there;
    for (const auto& [id, job] : ledger.jobs) collect(job, there);
    for (const std::string& key : book.acked) {
      // Of checkpoints that were uploaded, only the newest is kept.
      const bool of_checkpoint =
          key.contains(" outputs-uploaded ") && !key.ends_with(' ') && !key.ends_with(" logs");
      if (of_checkpoint || there.contains(key) ||
          !ledger.jobs.contains(JobId(key.substr(0, key.find('.')))))
        continue;
      return broken(fmt::format("'{}' was acknowledged and is gone", key));
    }
  }
  static void collect(const core::JobRecord& job, std::set<std::string>& there) {
    for (const core::AttemptRecord& attempt : job.attempts) {
      if (attempt.first_step)
        there.insert(natural_key(core::FirstStep{.job = job.id, .attempt = attempt.number}));
      for (const core::NodePart& part : attempt.parts) {
        const NodeName& node = part.placed.node;
        if (part.started)
          there.insert(natural_key(
              core::NodeStarted{.job = job.id, .attempt = attempt.number, .node = node}));
        if (part.start_failed)
          there.insert(natural_key(
              core::NodeStartFailed{.job = job.id, .attempt = attempt.number, .node = node}));
        if (part.clock_ahead)
          there.insert(natural_key(
              core::NodeClockSkewed{.job = job.id, .attempt = attempt.number, .node = node}));
        if (part.outputs) there.insert(natural_key(*part.outputs));
        if (part.logs_end) there.insert(natural_key(*part.logs_end));
        if (part.swept)
          there.insert(
              natural_key(core::NodeSwept{.job = job.id, .attempt = attempt.number, .node = node}));
        for (const auto& [rank, exit] : part.exits)
          there.insert(natural_key(core::RankExited{
              .job = job.id, .attempt = attempt.number, .node = node, .rank = rank}));
      }
    }
  }
};

class FinalIsFinal : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "final-is-final"; }
  void accepted(const core::Event& event, const core::Ledger&) override {
    const Book& book = world_.watch.book();
    const auto ended = [&](const JobId& id) {
      const auto job = book.durable.find(id);
      return job != book.durable.end() && job->second.outcome.has_value();
    };
    if (const auto* it = std::get_if<core::JobEnded>(&event.body); it != nullptr && ended(it->job))
      broken(fmt::format("job {} ended a second time", it->job.str()));
    if (const auto* it = std::get_if<core::CancelRequested>(&event.body);
        it != nullptr && ended(it->job))
      broken(fmt::format("job {} was cancelled after its end", it->job.str()));
    if (const auto* it = std::get_if<core::AttemptPlaced>(&event.body);
        it != nullptr && ended(it->job))
      broken(fmt::format("job {} was placed after its end", it->job.str()));
  }
  void replayed(const core::Ledger& ledger) override {
    for (const auto& [id, job] : world_.watch.book().durable) {
      if (!job.outcome) continue;
      const auto live = ledger.jobs.find(id);
      const auto tombstone = ledger.tombstones.find(id);
      const bool there = live != ledger.jobs.end() || tombstone != ledger.tombstones.end();
      if (!there) return broken(fmt::format("job {} had ended and is gone", id.str()));
      const core::JobPhase phase =
          live != ledger.jobs.end() ? live->second.phase : tombstone->second.phase;
      const core::JobPhase expected =
          *job.outcome == core::Outcome::Succeeded
              ? core::JobPhase::Succeeded
              : (*job.outcome == core::Outcome::Failed ? core::JobPhase::Failed
                                                       : core::JobPhase::Cancelled);
      if (phase != expected)
        return broken(fmt::format("job {} had ended {}, now it is {}", id.str(),
                                  core::to_string(expected), core::to_string(phase)));
    }
  }
};

class SubmitOnce : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "one-job-a-request"; }
  void replied(const RequestId& request, const JobId& job) override {
    const auto before = world_.watch.book().replied.find(request);
    if (before != world_.watch.book().replied.end() && before->second != job)
      broken(fmt::format("request {} was answered with job {}, then with {}", request.str(),
                         before->second.str(), job.str()));
  }
};

class FactsOnce : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "a-fact-is-filed-once"; }
  void synced(const std::vector<journal::Row>& rows) override {
    std::set<std::string> of_batch;
    for (const journal::Row& row : rows) {
      const std::string key = natural_key(row.event.body);
      if (key.empty()) continue;
      if (world_.watch.book().facts.contains(key) || !of_batch.insert(key).second)
        return broken(fmt::format("'{}' is in the journal twice", key));
    }
  }
};

// What apply() keeps up to date event by event is what the facts alone give.
class DerivedFromFacts : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "derived-from-facts"; }
  void folded(const core::Event& event, const core::Ledger& after) override {
    if (const std::string wrong = core::wrongly_derived(after); !wrong.empty())
      broken(fmt::format("after '{}': {} is not what the facts give", text_of(event.body), wrong));
  }
  void replayed(const core::Ledger& ledger) override {
    if (const std::string wrong = core::wrongly_derived(ledger); !wrong.empty())
      broken(fmt::format("after a replay: {} is not what the facts give", wrong));
  }
};

}  // namespace

std::vector<std::unique_ptr<Invariant>> durable_invariants(World& world) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<DurableBeforeVisible>(world));
  all.push_back(std::make_unique<AckedNeverLost>(world));
  all.push_back(std::make_unique<FinalIsFinal>(world));
  all.push_back(std::make_unique<SubmitOnce>(world));
  all.push_back(std::make_unique<FactsOnce>(world));
  all.push_back(std::make_unique<DerivedFromFacts>(world));
  return all;
}

}  // namespace muster::sim
