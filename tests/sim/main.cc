// muster-sim: histories of a simulated cluster. docs/simulation.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/sim/world.h"

namespace muster::sim {
namespace {

#ifdef MUSTER_SIM_BROKEN
constexpr bool kCoresAreBroken = true;
#else
constexpr bool kCoresAreBroken = false;
#endif

thread_local std::uint64_t current_seed = 0;

// A failed assertion of the product ends the process; this prints its seed first.
void on_abort(int) {
  const std::string text =
      fmt::format("the history of seed {} ended in an assertion: muster-sim --seed {}\n",
                  current_seed, current_seed);
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

struct Sum {
  std::uint64_t histories = 0, deeds = 0;
  Time lasted = 0;
  Coverage coverage;
  std::vector<History> broken;
};

Sum run_many(const Knobs& knobs, std::uint64_t first, std::uint64_t last, Mutant mutant,
             std::string_view until, unsigned threads) {
  // `until` is a list of invariants. The first history that breaks one of them is enough, and other
  // invariants do not count.
  Sum sum;
  std::mutex guard;
  std::atomic<std::uint64_t> next = first;
  std::atomic<bool> enough = false;
  const auto work = [&] {
    while (!enough) {
      const std::uint64_t seed = next++;
      if (seed > last) return;
      current_seed = seed;
      Knobs own = knobs;
      own.seed = seed;
      History history = World(own, mutant, false).run();
      const std::scoped_lock lock(guard);
      ++sum.histories;
      sum.deeds += history.deeds;
      sum.lasted += history.lasted;
      sum.coverage.add(history.coverage);
      if (!history.violation) continue;
      if (!until.empty()) {
        if (until.find(history.violation->invariant) == std::string_view::npos) continue;
        enough = true;
      }
      sum.broken.push_back(std::move(history));
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread& thread : pool) thread.join();
  std::ranges::sort(sum.broken, {}, &History::seed);
  return sum;
}

// Returns true if every kind happened often enough, and every transition was taken.
bool print_coverage(const Coverage& coverage, std::uint64_t least) {
  bool enough = true;
  fmt::print("\nfaults\n");
  for (const FaultRow& row : kFaults) {
    const std::uint64_t count = coverage.faults[static_cast<std::size_t>(row.fault)];
    enough = enough && count >= least;
    fmt::print("  {:>9}  {}{}\n", count, row.name,
               count >= least ? "" : fmt::format("   <-- fewer than {}", least));
  }
  fmt::print("\narrows of a job's life\n");
  for (std::size_t i = 0; i < core::kJobMoves.size(); ++i) {
    const core::JobMove& move = core::kJobMoves[i];
    enough = enough && coverage.moves[i] > 0;
    fmt::print("  {:>9}  {} -> {}: {}{}\n", coverage.moves[i], core::to_string(move.from),
               core::to_string(move.to), core::to_string(move.on),
               coverage.moves[i] > 0 ? "" : "   <-- never taken");
  }
  for (const std::string_view what : kMustBeSeen) {
    const auto seen = coverage.seen.find(std::string(what));
    if (seen != coverage.seen.end()) continue;
    enough = false;
    fmt::print("\nnever seen: {}\n", what);
  }
  fmt::print("\nalso seen\n");
  for (const auto& [what, count] : coverage.seen) fmt::print("  {:>9}  {}\n", count, what);
  return enough;
}

int run_one(const Knobs& knobs, Mutant mutant) {
  current_seed = knobs.seed;
  World world(knobs, mutant, true);
  fmt::print(
      "seed {}: {} nodes of {} devices, {} jobs, storm for {} s{}\n", knobs.seed,
      world.scenario.nodes, world.scenario.devices, world.scenario.jobs.size(),
      world.scenario.storm_until / kSecond,
      mutant == Mutant::None ? "" : fmt::format(", broken on purpose: {}", to_string(mutant)));
  for (const JobPlan& plan : world.scenario.jobs) {
    fmt::print(
        "  {}: {} x {}, {}, {} steps of {} ms, checkpoint every {}, grace {} s, stop grace {} s\n",
        plan.name, plan.nodes, plan.devices,
        plan.once ? "once" : (plan.lockstep ? "lockstep" : "not in lockstep"), plan.total_steps,
        plan.step_time / kMillisecond, plan.checkpoint_every, plan.orphan_grace / kSecond,
        plan.stop_grace / kSecond);
    if (!plan.after.empty()) fmt::print("    after {}\n", fmt::join(plan.after, ", "));
    if (!plan.starts_from.empty())
      fmt::print("    starts from {}: {}\n", plan.starts_from, v1::StartAs_Name(plan.as));
  }
  const History history = world.run();
  fmt::print("{} deeds, {:.1f} s of virtual time\n", history.deeds,
             static_cast<double>(history.lasted) / static_cast<double>(kSecond));
  if (!history.violation) return EXIT_SUCCESS;
  fmt::print("BROKEN: {}: {}\n", history.violation->invariant, history.violation->text);
  return EXIT_FAILURE;
}

int run_mutants(const Knobs& knobs, std::uint64_t most, unsigned threads) {
  bool all = true;
  // A mutant's history may never end, so its length is limited.
  Knobs short_ones = knobs;
  short_ones.steps_max = std::min<std::uint64_t>(knobs.steps_max, 40'000);
  fmt::print("{:<22} {:>6}  {}\n", "broken on purpose", "seed", "caught by");
  for (const MutantRow& row : kMutants) {
    Sum sum;
    if (row.seed != 0) sum = run_many(short_ones, row.seed, row.seed, row.mutant, row.expected, 1);
    const bool moved = row.seed != 0 && sum.broken.empty();
    if (sum.broken.empty()) sum = run_many(short_ones, 1, most, row.mutant, row.expected, threads);
    if (sum.broken.empty()) {
      all = false;
      fmt::print("{:<22} {:>6}  NOT CAUGHT in {} histories\n", row.name, "", sum.histories);
    } else {
      fmt::print("{:<22} {:>6}  {}: {}\n", row.name, sum.broken.front().seed,
                 sum.broken.front().violation->invariant, sum.broken.front().violation->text);
    }
    if (moved)
      fmt::print("{:<22} {:>6}  no longer catches it: write another one into mutant.h\n", "",
                 row.seed);
    std::fflush(stdout);
  }
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  using namespace muster::sim;
  CLI::App app{"Histories of a simulated cluster around muster's real cores"};
  Knobs knobs;
  std::optional<std::uint64_t> seed;
  std::string seeds, mutant_name;
  bool mutants = false, check_coverage = false;
  std::uint64_t mutant_seeds = 16'000;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("--seed", seed, "run this history and print its trace");
  app.add_option("--seeds", seeds, "run histories A..B quietly, print what they went through");
  app.add_option("--mutant", mutant_name, "run a variant that is broken on purpose");
  app.add_flag("--mutants", mutants,
               "run every broken variant until it is caught; fails when one is not");
  app.add_option("--mutant-seeds", mutant_seeds, "at most so many histories a variant");
  app.add_flag("--check-coverage", check_coverage,
               "fail unless every kind of fault came often and every arrow was taken");
  app.add_option("--steps", knobs.steps_max, "at most so many deeds a history");
  app.add_option("--nodes", knobs.nodes, "instead of what the seed says");
  app.add_option("--jobs", knobs.jobs, "instead of what the seed says");
  app.add_option("--threads", threads, "histories at a time");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGABRT, on_abort);

  Mutant mutant = Mutant::None;
  if (!kCoresAreBroken && (mutants || !mutant_name.empty())) {
    fmt::print(stderr,
               "this program has the cores as they are; muster-sim-broken has the variants\n");
    return 64;
  }
  if (!mutant_name.empty()) {
    const auto named = mutant_named(mutant_name);
    if (!named) {
      fmt::print(stderr, "there is no variant '{}'; there are:", mutant_name);
      for (const MutantRow& row : kMutants) fmt::print(stderr, " {}", row.name);
      fmt::print(stderr, "\n");
      return 64;
    }
    mutant = *named;
  }
  if (mutants) return run_mutants(knobs, mutant_seeds, threads);
  if (seeds.empty()) {
    knobs.seed = seed.value_or(1);
    return run_one(knobs, mutant);
  }
  const auto dots = seeds.find("..");
  const std::uint64_t first = std::strtoull(seeds.c_str(), nullptr, 10);
  const std::uint64_t last =
      dots == std::string::npos ? first : std::strtoull(seeds.c_str() + dots + 2, nullptr, 10);
  const Sum sum = run_many(knobs, first, last, mutant, "", threads);
  fmt::print("{} histories, {} deeds, {:.1f} h of virtual time, {} broken\n", sum.histories,
             sum.deeds, static_cast<double>(sum.lasted) / static_cast<double>(60 * kMinute),
             sum.broken.size());
  for (const History& history : sum.broken) {
    fmt::print("  seed {}: {}: {} (at {:.3f} s)\n", history.seed, history.violation->invariant,
               history.violation->text,
               static_cast<double>(history.violation->at) / static_cast<double>(kSecond));
  }
  const bool covered = print_coverage(sum.coverage, 100);
  if (check_coverage && !covered) fmt::print("\nnot everything was met often enough\n");
  return sum.broken.empty() && (covered || !check_coverage) ? EXIT_SUCCESS : EXIT_FAILURE;
}
