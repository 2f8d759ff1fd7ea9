// A scripted history through the real core on the real journal, stopped before and after each sync.
// After each stop, a new incarnation folds the journal. Its clients and agents send again what was
// not acknowledged (and all that they still have), and the script continues. Phases, attempts,
// exits and charges are the same as in an undisturbed run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "controller/core/core.h"
#include "tests/unit/journal/journal_dir.h"
#include "tests/unit/journal/sync_points.h"

namespace muster::journal {
namespace {

using core::Input;

// --- the script: what clients and agents send, one batch a line ----------------------------------
Input node(const std::string& name) {
  v1::Inventory inventory;
  inventory.set_address(name);
  for (std::uint32_t id = 0; id < 4; ++id) {
    auto& device = *inventory.add_devices();
    device.set_id(id);
    device.set_type("cpu");
  }
  return core::RegisterNode{.node = NodeName(name),
                            .instance = InstanceId("i1"),
                            .boot_id = BootId("b1"),
                            .inventory = inventory,
                            .version = "test"};
}
Input submit(const std::string& id, std::uint32_t devices) {
  v1::JobSpec spec;
  spec.set_name("name-" + id);
  spec.mutable_resources()->set_nodes(2);
  spec.mutable_resources()->set_devices(devices);
  spec.mutable_success()->set_exit0(true);
  return core::SubmitJob{
      .job = JobId(id), .request_id = RequestId("r-" + id), .spec = spec, .spec_hash = "h"};
}
// A chain of two: the second waits for the first, and starts with a checkpoint of another job.
Input chain(const std::string& first, const std::string& second) {
  auto made = std::get<core::SubmitJob>(submit(first, 1));
  core::ChainedJob behind{.job = JobId(second),
                          .spec = std::get<core::SubmitJob>(submit(second, 1)).spec,
                          .resolved = {},
                          .spec_hash = "h"};
  behind.resolved.add_after(first);
  behind.spec.mutable_start()->set_from("/data/base");
  behind.resolved.mutable_start()->mutable_point()->set_step(500);
  for (v1::JobSpec* spec : {&made.spec, &behind.spec}) {
    spec->mutable_stage()->set_chain_name("chain");
    spec->mutable_stage()->set_count(2);
  }
  for (v1::ResolvedSpec* resolved : {&made.resolved, &behind.resolved})
    resolved->mutable_stage()->set_chain(first);
  made.behind.push_back(std::move(behind));
  return made;
}
v1::Fact fact(const std::string& id, std::uint32_t attempt) {
  v1::Fact made;
  made.set_job_id(id);
  made.set_attempt(attempt);
  made.mutable_at()->set_seconds(1'800'000'000);
  return made;
}
Input report(const std::string& from, v1::Fact what) {
  return core::ReportFact{
      .node = NodeName(from), .instance = InstanceId("i1"), .fact = std::move(what)};
}
Input up(const std::string& id, std::uint32_t attempt, const std::string& on) {
  v1::Fact what = fact(id, attempt);
  what.mutable_started()->add_pids(7);
  return report(on, std::move(what));
}
Input over(const std::string& id, std::uint32_t attempt, const std::string& on, std::uint32_t rank,
           int code, int signal = 0) {
  v1::Fact what = fact(id, attempt);
  what.mutable_exited()->set_rank(rank);
  what.mutable_exited()->set_code(code);
  what.mutable_exited()->set_signal(signal);
  what.mutable_exited()->set_stop_requested(signal == 15);
  return report(on, std::move(what));
}
Input swept(const std::string& id, std::uint32_t attempt, const std::string& on) {
  v1::Fact what = fact(id, attempt);
  what.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
  return report(on, std::move(what));
}
Input logs(const std::string& id, std::uint32_t attempt, const std::string& on) {
  return core::ReportLogsCollected{
      .job = JobId(id), .attempt = AttemptNo(attempt), .node = NodeName(on)};
}

std::vector<std::vector<Input>> script() {
  return {
      {node("n01"), node("n02")},
      {submit("j1", 1)},
      {submit("j2", 1), submit("j3", 4)},  // j3 waits
      {up("j1", 1, "n01"), up("j2", 1, "n01")},
      {up("j1", 1, "n02")},
      {over("j1", 1, "n02", 1, -1, 9)},  // killed: attempt 1 of j1 breaks
      {up("j2", 1, "n02"), over("j1", 1, "n01", 0, -1, 15)},
      {swept("j1", 1, "n01")},
      {swept("j1", 1, "n02"), logs("j1", 1, "n01")},  // attempt 2
      {up("j1", 2, "n01"), up("j1", 2, "n02"), logs("j1", 1, "n02")},
      {core::CancelJob{.job = JobId("j3"), .reason = "not this one"}},
      {over("j2", 1, "n01", 0, 3), over("j2", 1, "n02", 1, -1, 15), swept("j2", 1, "n01"),
       swept("j2", 1, "n02")},
      {over("j1", 2, "n01", 0, 0), over("j1", 2, "n02", 1, 0)},
      {swept("j1", 2, "n01"), swept("j1", 2, "n02")},
      // the same user error again
      {up("j2", 2, "n01"), up("j2", 2, "n02"), over("j2", 2, "n01", 0, 3)},
      // nothing more will arrive of j1: archived
      {logs("j1", 2, "n01"), logs("j1", 2, "n02")},
      // j2 fails for good
      {over("j2", 2, "n02", 1, -1, 15), swept("j2", 2, "n01"), swept("j2", 2, "n02")},
      {chain("k1", "k2")},
      {up("k1", 1, "n01"), up("k1", 1, "n02"), over("k1", 1, "n01", 0, 0),
       over("k1", 1, "n02", 1, 0), swept("k1", 1, "n01")},
      {swept("k1", 1, "n02")},                       // k2 is placed
      {logs("k1", 1, "n01"), logs("k1", 1, "n02")},  // k1 is archived
      {up("k2", 1, "n01"), up("k2", 1, "n02")},
  };
}

// --- one incarnation of a controller: the shell's batch, without its loop ------------------------
class Incarnation {
 public:
  explicit Incarnation(const std::filesystem::path& dir) {
    limits_.archive_after = Duration::zero();
    auto journal = SqliteJournal::open(options_for(dir));
    if (!journal) throw std::runtime_error(journal.error().message);
    journal_ = std::move(*journal);
    auto loaded =
        journal_->load([&](const Row& row) { core::apply(ledger_, row.index, row.event); });
    if (!loaded) throw std::runtime_error(loaded.error().message);
    presence_.listening_since = now_.boot;
    take(core::ControllerStarted{
        .epoch = Epoch(ledger_.epoch.value + 1), .cluster = ClusterId("c-1"), .version = "test"});
    make_durable();
  }

  // Decide, apply, propose to the fixed point, append and sync once, archive. When it returns,
  // everything of the batch may be released.
  void batch(const std::vector<Input>& inputs) {
    now_.wall += std::chrono::milliseconds(1);
    now_.boot += std::chrono::milliseconds(1);
    for (const Input& input : inputs) {
      put(input);
      if (const auto* registered = std::get_if<core::RegisterNode>(&input)) {
        core::observe(presence_, ledger_,
                      core::Connected{.node = registered->node,
                                      .connection = ConnectionId(++connections_),
                                      .instance = registered->instance,
                                      .present = all_of(registered->node),
                                      .boot_id = registered->boot_id},
                      now_);
      }
    }
    for (int round = 0; round < 20; ++round) {
      const core::Proposal proposal = core::propose(ledger_, presence_, now_, limits_);
      if (proposal.inputs.empty()) break;
      for (const Input& input : proposal.inputs) put(input);
    }
    make_durable();
  }

  // The projection that must not depend on crashes: no times, no epochs.
  [[nodiscard]] std::string projection() {
    std::string text;
    for (const auto& [id, job] : ledger_.jobs) {
      text +=
          fmt::format("{} {} verdict {} start {}\n", id.value, core::to_string(job.phase),
                      job.verdict ? job.verdict->reason : "-", job.start ? job.start->step : -1);
      for (const core::AttemptRecord& attempt : job.attempts) {
        text +=
            fmt::format("  attempt {} state {} charged {} verdict {} fence {} from the start {}\n",
                        attempt.number.value, static_cast<int>(attempt.state), attempt.charged,
                        attempt.verdict ? attempt.verdict->reason : "-", attempt.fence,
                        attempt.resume && attempt.resume->from_start);
        for (const core::NodePart& part : attempt.parts) {
          text +=
              fmt::format("    {} device {} started {} swept {} logs {}\n", part.placed.node.value,
                          part.placed.devices.at(0), part.started, part.swept, part.logs_collected);
          for (const auto& [rank, exit] : part.exits)
            text += fmt::format("      rank {} code {} signal {}\n", rank.value, exit.code,
                                exit.signal);
        }
      }
    }
    for (const auto& [id, jobs] : ledger_.indexes.chains) {
      text += fmt::format("chain {}:", id.value);
      for (const JobId& job : jobs) text += " " + job.value;
      text += "\n";
    }
    for (const auto& [id, tombstone] : ledger_.tombstones) {
      text += fmt::format("{} archived '{}' {} {}\n", id.value, tombstone.name,
                          tombstone.request_id.value, core::to_string(tombstone.phase));
      const auto archived = journal_->archived_job(id);
      if (!archived || !*archived) return text + "NOT IN THE ARCHIVE";
      for (const Row& row : (*archived)->rows) {
        text += fmt::format("    {}", row.event.body.index());
        if (const auto* exit = std::get_if<core::RankExited>(&row.event.body))
          text +=
              fmt::format(" rank {} code {} signal {}", exit->rank.value, exit->code, exit->signal);
        if (const auto* ended = std::get_if<core::AttemptEnded>(&row.event.body))
          text += fmt::format(" charged {}", ended->charged);
        text += "\n";
      }
    }
    return text;
  }

 private:
  // Agents lose nothing.
  [[nodiscard]] std::vector<v1::PresentAttempt> all_of(const NodeName& on) const {
    std::vector<v1::PresentAttempt> present;
    const auto parts = ledger_.indexes.node_parts.find(on);
    if (parts == ledger_.indexes.node_parts.end()) return present;
    for (const auto& [job, attempt] : parts->second.open) {
      v1::PresentAttempt& one = present.emplace_back();
      one.set_job_id(job.str());
      one.set_attempt(attempt.value);
    }
    return present;
  }
  void put(const Input& input) {
    core::Decision decision = core::decide(ledger_, presence_, input, now_, limits_);
    for (core::EventBody& body : decision.events) take(std::move(body));
  }
  void take(core::EventBody body) {
    pending_.push_back({.index = JournalIndex(journal_->last().value + pending_.size() + 1),
                        .event = {.at = now_.wall, .body = std::move(body)}});
    core::apply(ledger_, pending_.back().index, pending_.back().event);
  }
  void make_durable() {
    if (auto done = journal_->append(pending_); !done)
      throw std::runtime_error(done.error().message);
    for (const Row& row : pending_) {
      const auto* archived = std::get_if<core::JobArchived>(&row.event.body);
      if (archived == nullptr) continue;
      if (auto moved = journal_->archive(archived->job); !moved)
        throw std::runtime_error(moved.error().message);
    }
    pending_.clear();
  }

  core::Ledger ledger_;
  core::Presence presence_;
  core::Limits limits_;
  Now now_{.wall = WallTime(std::chrono::seconds(1'800'000'000)),
           .boot = BootTime(std::chrono::hours(1))};
  std::unique_ptr<SqliteJournal> journal_;
  std::vector<Row> pending_;
  std::uint64_t connections_ = 0;
};

struct Stopped {
  std::size_t released = 0;
  bool died = false;
};
Stopped run_until_sync(const std::filesystem::path& dir,
                       const std::vector<std::vector<Input>>& batches, std::uint64_t die_at,
                       bool before) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    std::uint64_t seen = 0;
    on_sync([&](bool is_before) {
      if (is_before) ++seen;
      if (seen == die_at && is_before == before) ::_exit(9);
    });
    try {
      Incarnation incarnation(dir);
      for (const auto& batch : batches) {
        incarnation.batch(batch);
        if (::write(pipe[1], "r", 1) != 1) ::_exit(8);
      }
    } catch (...) {
      ::_exit(8);
    }
    ::_exit(0);
  }
  ::close(pipe[1]);
  Stopped stopped;
  char byte = 0;
  while (::read(pipe[0], &byte, 1) == 1) ++stopped.released;
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9))
    throw std::runtime_error("the child went wrong");
  stopped.died = WEXITSTATUS(status) == 9;
  return stopped;
}

TEST(CrashOfTheCore, AtAnySyncEndsAsIfNothingHadHappened) {
  const auto batches = script();
  std::string undisturbed;
  {
    TempDir dir;
    Incarnation incarnation(dir.path() / "journal");
    for (const auto& batch : batches) incarnation.batch(batch);
    undisturbed = incarnation.projection();
  }
  // The script really does this.
  for (const char* expected :
       {"j1 archived 'name-j1' r-j1 succeeded", "j2 failed", "j3 archived 'name-j3' r-j3 cancelled",
        "attempt 2", "charged true", "rank 1 code -1 signal 9", "chain k1: k1 k2",
        "k1 archived 'name-k1' r-k1 succeeded", "k2 running verdict - start 500",
        "from the start true"}) {
    EXPECT_NE(undisturbed.find(expected), std::string::npos) << expected << " in\n" << undisturbed;
  }
  int points = 0;
  for (const bool before : {true, false}) {
    for (std::uint64_t die_at = 1;; ++die_at) {
      TempDir dir;
      const Stopped stopped = run_until_sync(dir.path() / "journal", batches, die_at, before);
      Incarnation incarnation(dir.path() / "journal");
      // Agents report all that they have, and clients repeat what was not answered: here,
      // everything from the beginning, known or not.
      for (const auto& batch : batches) incarnation.batch(batch);
      ASSERT_EQ(incarnation.projection(), undisturbed)
          << "stopped " << (before ? "before" : "after") << " sync " << die_at << ", "
          << stopped.released << " batches released";
      if (!stopped.died) break;
      ++points;
    }
  }
  EXPECT_GT(points, 2 * 18);
}

}  // namespace
}  // namespace muster::journal
