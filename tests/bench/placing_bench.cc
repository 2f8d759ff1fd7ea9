// How long the controller's strand is held while many jobs become placeable at once: one batch is
// what everybody else waits for. The core alone, without its journal.
//   placing_bench [NODES [JOBS]]        default 2000 4000; nodes of 8 devices, jobs of 1
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "controller/core/core.h"

namespace {

using namespace muster;
using namespace muster::core;

class Cluster {
 public:
  Cluster(std::size_t nodes, std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; ++i) {
      v1::JobSpec spec;
      spec.set_name(fmt::format("job-{}", i));
      spec.set_engine("command");
      spec.mutable_launch()->add_run("true");
      spec.mutable_resources()->set_nodes(1);
      spec.mutable_resources()->set_devices(1);
      take(SubmitJob{.job = JobId(fmt::format("{:013}", i)), .spec = spec, .spec_hash = "h"});
    }
    for (std::size_t i = 0; i < nodes; ++i) {
      const NodeName name(fmt::format("node-{:05}", i));
      v1::Inventory inventory;
      inventory.set_address(fmt::format("10.{}.{}.{}", i / 65536, i / 256 % 256, i % 256));
      for (std::uint32_t id = 0; id < 8; ++id) {
        inventory.add_devices()->set_id(id);
        inventory.mutable_devices(static_cast<int>(id))->set_type("cpu");
      }
      take(RegisterNode{.node = name,
                        .instance = InstanceId("i"),
                        .boot_id = BootId("b"),
                        .inventory = inventory,
                        .version = "bench"});
      observe(presence_, ledger_,
              Connected{.node = name,
                        .connection = ConnectionId(i + 1),
                        .instance = InstanceId("i"),
                        .present = {},
                        .boot_id = BootId("b")},
              now_);
    }
  }

  // As the shell does it: rounds until nothing new comes. Answers how many were placed.
  std::size_t batch() {
    PlacingTurn turn{.cursor = cursor_};
    std::size_t placed = 0;
    for (bool news = true; news;) {
      news = false;
      for (const Input& input : propose(ledger_, presence_, now_, limits_, turn).inputs) {
        const bool placement = std::holds_alternative<ProposePlacement>(input);
        news = take(input) || news;
        placed += placement ? 1 : 0;
      }
    }
    cursor_ = turn.cursor;
    return placed;
  }
  [[nodiscard]] bool goes_on() const { return cursor_.has_value(); }

 private:
  bool take(const Input& input) {
    const Decision decision = decide(ledger_, presence_, input, now_, limits_);
    for (const EventBody& body : decision.events)
      apply(ledger_, JournalIndex(++index_), Event{.at = now_.wall, .body = body});
    return !decision.events.empty();
  }
  Ledger ledger_;
  Presence presence_;
  Now now_{.wall = WallTime(std::chrono::seconds(1'800'000'000)),
           .boot = BootTime(std::chrono::hours(1))};
  Limits limits_;
  std::optional<QueueCursor> cursor_;
  std::uint64_t index_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t nodes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000,
                    jobs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4000;
  Cluster cluster(nodes, jobs);
  std::size_t placed = 0, batches = 0;
  double longest = 0, all = 0;
  do {
    // this process's own time: other work on the machine counts for less
    const std::clock_t begin = std::clock();
    placed += cluster.batch();
    const double took = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    longest = std::max(longest, took);
    all += took;
    ++batches;
  } while (cluster.goes_on());
  std::printf(
      "%zu nodes, %zu jobs: %zu placed in %zu batches, the longest %.1f ms, all %.1f ms of "
      "processor time\n",
      nodes, jobs, placed, batches, longest, all);
  return placed == std::min(jobs, nodes * 8) ? 0 : 1;
}
