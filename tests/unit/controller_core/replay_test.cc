// Random histories. After every event, a replay gives the same ledger, also without the rows of
// archived jobs, and a restarted controller continues from it.
#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/controller_core/chain_world.h"

namespace muster::core {
namespace {

Ledger replay(const std::vector<std::pair<JournalIndex, Event>>& journal) {
  Ledger ledger;
  for (const auto& [index, event] : journal) apply(ledger, index, event);
  return ledger;
}

class History : public SmallWorld {
 public:
  explicit History(std::uint32_t seed) : chance_(seed) {
    limits.archive_after = std::chrono::seconds(30);
    limits.tombstone_keep = std::chrono::seconds(90);
    limits.start_timeout = std::chrono::seconds(20);
    for (const char* name : {"n0", "n1", "n2"}) node(name, 2);
  }

  void step() {
    const std::string name = fmt::format("n{}", pick(3));
    switch (pick(12)) {
      case 0: pick(4) == 0 ? submit_chain() : submit_one(); break;
      case 1: cancel_one(); break;
      case 2:
        see(Disconnected{.node = NodeName(name),
                         .connection = presence.nodes[NodeName(name)].connection});
        break;
      case 3: node(name, 2, fmt::format("b{}", pick(3)), fmt::format("i{}", 1 + pick(2))); break;
      case 4: put(DeclareNodeDead{.node = NodeName(name), .reason = "chance"}); break;
      case 5: time_passes(std::chrono::milliseconds(pick(20'000))); break;
      case 6: restart(); break;
      default:
        for (std::uint32_t count = 0; count < 4; ++count) fact_of_some();
        break;
    }
    phases();
  }

  std::set<std::pair<JobPhase, JobPhase>> taken;

 private:
  std::uint32_t pick(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(chance_);
  }

  void submit_one() {
    v1::JobSpec what = spec(fmt::format("job{}", pick(4)), 1 + pick(2), 1 + pick(2));
    what.mutable_launch()->set_lockstep(pick(2) == 0);
    what.mutable_recovery()->mutable_orphan_grace()->set_seconds(10);
    what.mutable_recovery()->set_max_restarts(3);
    if (pick(4) == 0) what.mutable_success()->set_regex("done");
    if (pick(3) == 0 && !ledger.jobs.empty()) {
      // Sometimes the same job twice, or a job that has failed, which is refused.
      for (std::uint32_t others = 1 + pick(2); others > 0; --others)
        what.mutable_schedule()->add_after(
            std::next(ledger.jobs.begin(), pick(static_cast<std::uint32_t>(ledger.jobs.size())))
                ->first.str());
    }
    const std::string id = fmt::format("j{:04}", ++jobs_);
    submit(id, what, fmt::format("r{}", pick(50)));
  }
  // Two stages with one of two names; the second starts from the first, or waits for nobody.
  void submit_chain() {
    const std::vector<std::string> ids = {fmt::format("j{:04}", jobs_ + 1),
                                          fmt::format("j{:04}", jobs_ + 2)};
    jobs_ += 2;
    std::vector<StageOf> stages = {{ids[0], "a"}, {ids[1], "b"}};
    if (pick(3) > 0) stages[1].after.push_back(ids[0]);
    std::vector<v1::JobSpec> specs = StagesWorld::specs(fmt::format("chain{}", pick(2)), stages);
    if (!stages[1].after.empty())
      StagesWorld::starts(specs[1], "a",
                          pick(2) == 0 ? v1::START_AS_RESUME_OR_SCRATCH : v1::START_AS_RESUME);
    put(StagesWorld::input(stages, specs, fmt::format("r{}", pick(50))));
  }
  void cancel_one() {
    if (ledger.jobs.empty() || pick(3) != 0) return;
    put(CancelJob{
        .job = std::next(ledger.jobs.begin(), pick(static_cast<std::uint32_t>(ledger.jobs.size())))
                   ->first,
        .whole_chain = pick(2) == 0});
  }
  // Mostly what agents report about live attempts, in no particular order, from either instance;
  // sometimes about old attempts.
  void fact_of_some() {
    if (ledger.jobs.empty()) return;
    const JobRecord& one =
        std::next(ledger.jobs.begin(), pick(static_cast<std::uint32_t>(ledger.jobs.size())))
            ->second;
    if (one.attempts.empty()) return;
    const AttemptRecord& attempt =
        pick(4) == 0 ? one.attempts[pick(static_cast<std::uint32_t>(one.attempts.size()))]
                     : one.attempts.back();
    const NodePart part = attempt.parts[pick(static_cast<std::uint32_t>(attempt.parts.size()))];
    v1::Fact what = fact(one.id.str(), attempt.number.value);
    switch (pick(9)) {
      case 0:
      case 1: what.mutable_started(); break;
      case 8:
        if (pick(3) > 0) return;
        what.mutable_auxiliary_exited()->set_name("scheduler");
        what.mutable_auxiliary_exited()->set_code(1);
        break;
      case 2: what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED); break;
      case 3: what.mutable_first_step()->set_step(pick(100)); break;
      case 4:
        put(ReportLogsCollected{
            .job = one.id, .attempt = attempt.number, .node = part.placed.node});
        return;
      case 5:
        if (pick(4) == 0)
          what.mutable_start_failed()->set_why(v1::START_FAILURE_GONE);
        else
          what.mutable_started();
        break;
      default: {
        what.mutable_exited()->set_rank(part.placed.first_rank.value +
                                        pick(part.placed.rank_count));
        const std::uint32_t how = pick(6);
        if (how == 0) what.mutable_exited()->set_code(1);
        if (how == 1) what.mutable_exited()->set_signal(9);
        what.mutable_exited()->set_success_seen(pick(2) == 0);
        if (pick(2) == 0) what.mutable_exited()->set_step(pick(100));
        if (pick(2) == 0) what.mutable_exited()->set_total(100);
        what.mutable_exited()->set_evidence_kind(static_cast<v1::EvidenceKind>(pick(3)));
        break;
      }
    }
    report(part.placed.node.str(), std::move(what), part.placed.instance.str());
  }
  void time_passes(Duration time) {
    const BootTime end = now.boot + time;
    while (now.boot < end) {
      pass(std::min<Duration>(std::chrono::seconds(1), end - now.boot));
      for (const auto& [name, seen] : std::map(presence.nodes)) {
        if (seen.connection.value == 0) continue;
        observe(presence, ledger, HeartbeatHeard{.node = name, .connection = seen.connection}, now);
        observe(presence, ledger, HeartbeatAcked{.node = name, .connection = seen.connection}, now);
      }
      settle();
    }
  }
  void restart() {
    ledger = replay(journal);
    presence = Presence{};
    presence.listening_since = now.boot;
    settle();
  }
  void phases() {
    for (const auto& [id, job] : ledger.jobs) {
      const auto before = last_phase_.find(id);
      if (before != last_phase_.end() && before->second != job.phase)
        taken.insert({before->second, job.phase});
      last_phase_[id] = job.phase;
    }
  }

  std::mt19937 chance_;
  std::uint32_t jobs_ = 0;
  std::map<JobId, JobPhase> last_phase_;
};

// One more check than the assertions of apply(): devices are reserved for parts that are not swept,
// or whose attempt has not ended.
void check_devices(const Ledger& ledger) {
  for (const auto& [node, holders] : ledger.indexes.device_holders) {
    for (const auto& [device, key] : holders) {
      const AttemptRecord* attempt = ledger.jobs.at(key.first).attempt(key.second);
      ASSERT_NE(attempt, nullptr);
      ASSERT_TRUE(!attempt->part(node)->swept || !is_over(attempt->state));
    }
  }
  for (const auto& [id, job] : ledger.jobs) {
    for (const AttemptRecord& attempt : job.attempts) {
      if (&attempt != job.current()) {
        ASSERT_TRUE(is_over(attempt.state));
      }
      for (const NodePart& part : attempt.parts) {
        if (part.swept) continue;
        for (const std::uint32_t device : part.placed.devices) {
          ASSERT_EQ(ledger.indexes.device_holders.at(part.placed.node).at(device),
                    (AttemptKey{id, attempt.number}))
              << "an unswept part does not hold its devices";
        }
      }
    }
  }
}

TEST(Replay, GivesTheSameLedgerAtEveryEvent) {
  std::set<std::pair<JobPhase, JobPhase>> taken;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int count = 0; count < 150; ++count) {
      history.step();
      ASSERT_FALSE(testing::Test::HasFatalFailure());
      check_devices(history.ledger);
      ASSERT_FALSE(testing::Test::HasFatalFailure());
      if (count % 10 == 0) {
        ASSERT_EQ(dump(replay(history.journal)), dump(history.ledger));
        ASSERT_EQ(replay_of_what_is_kept(history), dump(history.ledger));
      }
    }
    taken.insert(history.taken.begin(), history.taken.end());
    // Every prefix of the journal is a ledger from which propose() can continue.
    Ledger ledger;
    for (const auto& [index, event] : history.journal) {
      apply(ledger, index, event);
      Presence nobody;
      nobody.listening_since = history.now.boot;
      const Now later{.wall = event.at, .boot = history.now.boot};
      for (const Input& input : propose(ledger, nobody, later, history.limits).inputs)
        (void)decide(ledger, nobody, input, later, history.limits);
    }
    ASSERT_EQ(dump(ledger), dump(history.ledger));
  }
  // The histories are useful: they went through all the phases that single steps can show.
  for (const auto& [from, to] : {std::pair{JobPhase::Queued, JobPhase::Launching},
                                 std::pair{JobPhase::Launching, JobPhase::Running},
                                 std::pair{JobPhase::Running, JobPhase::Draining},
                                 std::pair{JobPhase::Draining, JobPhase::Failed},
                                 std::pair{JobPhase::Draining, JobPhase::Cancelled},
                                 std::pair{JobPhase::Completing, JobPhase::Succeeded}}) {
    EXPECT_TRUE(taken.contains({from, to})) << to_string(from) << " to " << to_string(to);
  }
}

}  // namespace
}  // namespace muster::core
