// Uploads of outputs: a checkpoint counts in the store when all of it is there, everything is
// uploaded when nothing writes any more, and what does not come is said.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "controller/core/model/spec_view.h"
#include "tests/sim/invariant.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

bool is_local(const World& world, const JobId& job) {
  const auto submission = world.watch.book().submissions.find(job);
  return submission != world.watch.book().submissions.end() &&
         core::fetches_files(world.scenario.plan(submission->second.name).spec);
}

// The nodes that have files of a checkpoint of the attempt. None: a loss took the attempt.
std::vector<NodeName> uploaders(const World& world, const agent::RunKey& run) {
  std::vector<NodeName> nodes;
  const auto job = world.watch.book().durable.find(run.first);
  if (job == world.watch.book().durable.end()) return nodes;
  const auto attempt = job->second.attempts.find(run.second);
  if (attempt == job->second.attempts.end()) return nodes;
  for (const core::PlacedNode& placed : attempt->second.nodes) {
    if (placed.rank_count > 0 && (nodes.empty() || is_local(world, run.first)))
      nodes.push_back(placed.node);
  }
  return nodes;
}

class MarkComesLast : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "a-mark-comes-last"; }
  void uploading(const Machine&, const UploadTask& task) override {
    if (task.seal) check(task.run, *task.step);
  }
  void folded(const core::Event& event, const core::Ledger& after) override {
    const auto* uploaded = std::get_if<core::OutputsUploaded>(&event.body);
    if (uploaded == nullptr || !uploaded->step) return;
    const core::JobRecord& job = after.jobs.at(uploaded->job);
    const bool counts =
        std::ranges::any_of(job.checkpoints, [&](const core::CheckpointRecord& one) {
          return one.attempt == uploaded->attempt && one.step == *uploaded->step && one.uploaded;
        });
    if (!counts) return;
    const agent::RunKey run{uploaded->job, uploaded->attempt};
    check(run, *uploaded->step);
    if (!world_.watch.book().uploaded.contains({.run = run, .step = uploaded->step, .seal = true}))
      broken(fmt::format("step {} of {} counts as uploaded, and its mark is not there",
                         *uploaded->step, describe(run)));
    ++world_.coverage.seen["a checkpoint is whole in the store"];
  }

 private:
  void check(const agent::RunKey& run, std::int64_t step) const {
    const Book& book = world_.watch.book();
    const auto there = book.uploaded.find({.run = run, .step = step});
    for (const NodeName& node : uploaders(world_, run)) {
      if (there == book.uploaded.end() || !there->second.contains(node))
        return broken(fmt::format("step {} of {} gets its mark, and files of {} are not there",
                                  step, describe(run), node.str()));
    }
  }
};

class NothingWrites : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "uploads-when-nothing-writes"; }
  void ordered(const NodeName& node, const v1::Orders& orders) override {
    for (const v1::UploadOrder& order : orders.uploads()) {
      if (order.has_step() || order.logs()) continue;
      const auto job = world_.watch.book().durable.find(JobId(order.job_id()));
      if (job == world_.watch.book().durable.end() || job->second.attempts.empty()) continue;
      const auto& [latest, attempt] = *job->second.attempts.rbegin();
      if (attempt.ended) continue;
      const bool is_there = std::ranges::any_of(
          attempt.nodes, [&](const core::PlacedNode& placed) { return placed.node == node; });
      if (is_local(world_, job->first) && !is_there) {
        ++world_.coverage.seen["everything uploaded while the job goes on elsewhere"];
        continue;
      }
      broken(fmt::format("{} is to upload everything of {}.{}, and attempt {} may write there",
                         node.str(), order.job_id(), order.attempt(), latest.value));
    }
  }
  void uploading(const Machine& machine, const UploadTask& task) override {
    if (task.step) return;
    for (const auto& [pid, process] : machine.processes()) {
      if (task.logs && process.run != task.run) continue;
      // What a loss of the journal's end took is unknown to the controller, and goes on.
      if (process.kind == Process::Kind::Rank && process.run.first == task.run.first &&
          is_known(process.run))
        return broken(fmt::format("{} uploads {} of {}, and {} of {} lives there",
                                  machine.name().str(), task.logs ? "the logs" : "everything",
                                  describe(task.run), describe(process), describe(process.run)));
    }
  }

 private:
  [[nodiscard]] bool is_known(const agent::RunKey& run) const {
    const auto job = world_.watch.book().durable.find(run.first);
    return job != world_.watch.book().durable.end() && job->second.attempts.contains(run.second);
  }
};

class OutputsAreAccounted : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "outputs-are-accounted-for"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    if (const auto* uploaded = std::get_if<core::OutputsUploaded>(&event.body)) {
      check(*uploaded);
      // A journal that was put back has forgotten what was there when the order was made.
      if (!uploaded->removed.empty() && before.lineage.generation == 0)
        check_removed(*uploaded, before.jobs.at(uploaded->job));
    }
    if (const auto* archived = std::get_if<core::JobArchived>(&event.body))
      check_logs(before.jobs.at(archived->job));
    const auto* ended = std::get_if<core::JobEnded>(&event.body);
    if (ended == nullptr || ended->outcome != core::Outcome::Succeeded) return;
    const core::JobRecord& job = before.jobs.at(ended->job);
    if (!core::uploads_outputs(job.spec)) return;
    if (job.current()->notes.contains(core::Note::OutputsIncomplete)) {
      ++world_.coverage.seen["outputs incomplete"];
      return;
    }
    ++world_.coverage.seen["outputs uploaded"];
    for (const core::AttemptRecord& attempt : job.attempts) {
      for (const core::NodePart& part : attempt.parts) {
        const core::PlacedNode& placed = part.placed;
        if (placed.rank_count == 0 || !part.ran() || part.outputs ||
            taken_over(job, attempt, placed.node))
          continue;
        return broken(
            fmt::format("{} has succeeded, and nothing says what became of the outputs "
                        "of attempt {} on {}",
                        job.id.str(), attempt.number.value, placed.node.str()));
      }
    }
  }

 private:
  // A later attempt has the same directory.
  static bool taken_over(const core::JobRecord& job, const core::AttemptRecord& attempt,
                         const NodeName& node) {
    const bool local = core::fetches_files(job.spec);
    if (!local && attempt.parts.front().placed.node != node) return true;
    return std::ranges::any_of(job.attempts, [&](const core::AttemptRecord& later) {
      if (later.number <= attempt.number) return false;
      const core::NodePart* part = local ? later.part(node) : &later.parts.front();
      return part != nullptr && part->started;
    });
  }
  // As many stay in the store as the job says, and the newest ones.
  void check_removed(const core::OutputsUploaded& sealed, const core::JobRecord& job) const {
    ++world_.coverage.seen["an old checkpoint left the store"];
    using Key = std::pair<std::uint32_t, std::int64_t>;
    std::set<Key> good, removed;
    for (const core::CheckpointRecord& one : job.checkpoints)
      if (one.uploaded && !one.quarantined) good.emplace(one.attempt.value, one.step);
    if (sealed.step) good.emplace(sealed.attempt.value, *sealed.step);
    for (const core::RemoteCheckpoint& one : sealed.removed)
      removed.emplace(one.attempt.value, one.step);
    // One that has become suspect since the order counted when that was made.
    const bool are_suspect = std::ranges::any_of(
        job.checkpoints, [](const auto& one) { return one.uploaded && one.quarantined; });
    if (are_suspect) return;
    std::uint32_t place = 0;
    for (const Key& one : std::views::reverse(good))
      if (place++ < job.spec.outputs().keep() && removed.contains(one))
        return broken(
            fmt::format("step {} of {}.{} left the store: it is one of the {} newest there",
                        one.second, job.id.str(), one.first, job.spec.outputs().keep()));
  }
  // What became of the logs of each node that has run is known when the job is forgotten.
  void check_logs(const core::JobRecord& job) const {
    if (!core::uploads_logs(job.spec)) return;
    for (const core::AttemptRecord& attempt : job.attempts) {
      for (const core::NodePart& part : attempt.parts) {
        if (part.idle() || !part.closed() || part.logs_end) continue;
        return broken(
            fmt::format("{} is archived, and nothing says what became of the logs of "
                        "attempt {} on {}",
                        job.id.str(), attempt.number.value, part.placed.node.str()));
      }
    }
  }
  void check(const core::OutputsUploaded& uploaded) const {
    if (uploaded.logs) return check_logs_end(uploaded);
    if (uploaded.step) {
      if (uploaded.problem == "the node is lost")
        ++world_.coverage.seen["a checkpoint given up: a node is lost"];
      return;
    }
    if (!uploaded.problem.empty()) {
      ++world_.coverage.seen[fmt::format("outputs not uploaded: {}", uploaded.problem)];
      return;
    }
    const Book& book = world_.watch.book();
    const auto there =
        book.uploaded.find({.run = {uploaded.job, uploaded.attempt}, .step = {}, .seal = false});
    if (there == book.uploaded.end() || !there->second.contains(uploaded.node))
      broken(fmt::format("the outputs of {}.{} on {} are filed as uploaded, and are not there",
                         uploaded.job.str(), uploaded.attempt.value, uploaded.node.str()));
  }
  void check_logs_end(const core::OutputsUploaded& uploaded) const {
    const agent::RunKey run{uploaded.job, uploaded.attempt};
    const auto there =
        world_.watch.book().uploaded.find({.run = run, .step = {}, .seal = false, .logs = true});
    const bool is_there =
        there != world_.watch.book().uploaded.end() && there->second.contains(uploaded.node);
    if (!uploaded.problem.empty()) {
      ++world_.coverage.seen[fmt::format("logs not uploaded: {}", uploaded.problem)];
      return;
    }
    ++world_.coverage.seen[is_there ? "logs uploaded" : "there were no logs to upload"];
    if (is_there || !world_.watch.book().facts.contains(natural_key(core::NodeStarted{
                        .job = uploaded.job, .attempt = uploaded.attempt, .node = uploaded.node})))
      return;
    broken(fmt::format("the logs of {} on {} are filed as uploaded, and are not there",
                       describe(run), uploaded.node.str()));
  }
};

}  // namespace

std::vector<std::unique_ptr<Invariant>> upload_invariants(World& world) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<MarkComesLast>(world));
  all.push_back(std::make_unique<NothingWrites>(world));
  all.push_back(std::make_unique<OutputsAreAccounted>(world));
  return all;
}

}  // namespace muster::sim
