// spawn_floor STUB RANKS RUNS [WORKER]: measures the time from the first posix_spawn until the last
// of RANKS stubs is in main(), with the environment and the redirections that a rank gets. In turns
// with this, it measures the same through muster-worker (from its spawn, with the launch record
// already written). It prints one line for each run, "floor_ms worker_ms ratio", and then medians.
// The ratio of one interleaved run is what counts.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/process/identity.h"
#include "common/process/spawn.h"
#include "common/rundir/records.h"
#include "tests/support/stub_trainer/stamp.h"

namespace {

using namespace muster;
namespace fs = std::filesystem;

constexpr int kPatienceMs = 30000;

[[noreturn]] void give_up(const std::string& text) {
  std::fprintf(stderr, "spawn_floor: %s\n", text.c_str());
  std::exit(1);
}

std::vector<std::string> environment(std::uint32_t rank, std::uint32_t ranks) {
  std::vector<std::string> env = {"PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8",
                                  "PYTHONUNBUFFERED=1", "MUSTER_PROCESS_TAG=floor/floor.1@floor"};
  for (int i = 0; i < 12; ++i)
    env.push_back("TORCHELASTIC_VARIABLE_" + std::to_string(i) + "=value-of-a-usual-length");
  env.push_back("RANK=" + std::to_string(rank));
  env.push_back("LOCAL_RANK=" + std::to_string(rank));
  env.push_back("WORLD_SIZE=" + std::to_string(ranks));
  return env;
}

double floor_once(const std::string& stub, std::uint32_t ranks, const fs::path& dir,
                  ::stub::StampBoard& board, const std::string& stamps) {
  board.clear();
  std::vector<process::SpawnRequest> requests(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    requests[rank] = {.path = stub,
                      .argv = {stub, "--block", "--stamp", stamps},
                      .env = environment(rank, ranks),
                      .cwd = dir.string()};
    requests[rank].standard_out = {
        .path = (dir / ("floor-" + std::to_string(rank) + ".log")).string(),
        .flags = O_WRONLY | O_CREAT | O_APPEND};
    requests[rank].new_session = true;
  }
  std::vector<pid_t> pids;
  const auto began = ::stub::monotonic_ns();
  for (const auto& request : requests) {
    auto pid = process::spawn(request);
    if (!pid) give_up(pid.error().message);
    pids.push_back(*pid);
  }
  const bool all = board.wait_for_all(kPatienceMs);
  for (const pid_t pid : pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  if (!all) give_up("not every stub came to main()");
  return static_cast<double>(board.last() - began) / 1e6;
}

double worker_once(const std::string& worker, const std::string& stub, std::uint32_t ranks,
                   const fs::path& dir, ::stub::StampBoard& board, const std::string& stamps) {
  board.clear();
  const rundir::RunLayout run(dir / "job.1");
  fs::remove_all(run.root());
  const auto boot = process::boot_id();
  if (!boot || !rundir::make_run(run)) give_up("making the run directory failed");
  rundir::v1::Launch launch;
  launch.set_version(rundir::kVersion);
  launch.set_boot_id(boot->str());
  launch.set_process_tag("floor/floor.1@floor");
  launch.set_stop_grace_ms(1000);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto& added = *launch.add_ranks();
    added.set_rank(rank);
    for (const auto& argument : {stub, std::string("--block"), std::string("--stamp"), stamps})
      added.add_argv(argument);
    for (const auto& variable : environment(rank, ranks)) added.add_env(variable);
    added.set_cwd(dir.string());
    added.set_log(run.rank_log(rank).string());
  }
  if (!rundir::write_launch(run, launch) ||
      !rundir::write_lease(run, system_clock().now().boot + std::chrono::minutes(5), *boot))
    give_up("writing the launch record failed");
  const auto began = ::stub::monotonic_ns();
  const auto pid = process::spawn({.path = worker,
                                   .argv = {worker, run.root().string()},
                                   .env = {"PATH=/usr/bin:/bin"},
                                   .cwd = {},
                                   .new_session = true});
  if (!pid) give_up(pid.error().message);
  const bool all = board.wait_for_all(kPatienceMs);
  ::kill(*pid, SIGTERM);
  ::waitpid(*pid, nullptr, 0);
  if (!all) give_up("not every rank came to main()");
  return static_cast<double>(board.last() - began) / 1e6;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) give_up("usage: spawn_floor STUB RANKS RUNS [WORKER]");
  const std::string stub = fs::absolute(argv[1]);
  const auto ranks = static_cast<std::uint32_t>(std::atoi(argv[2]));
  const int runs = std::atoi(argv[3]);
  if (ranks == 0 || runs <= 0) give_up("RANKS and RUNS are numbers above 0");
  std::string pattern = (fs::temp_directory_path() / "spawn_floor.XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) give_up("making a temporary directory failed");
  const fs::path dir = pattern;
  const std::string stamps = dir / "stamps";
  ::stub::StampBoard board(stamps, ranks);
  std::vector<double> floors;
  std::vector<double> workers;
  std::vector<double> ratios;
  for (int i = 0; i < runs; ++i) {
    floors.push_back(floor_once(stub, ranks, dir, board, stamps));
    if (argc > 4) {
      workers.push_back(worker_once(fs::absolute(argv[4]), stub, ranks, dir, board, stamps));
      ratios.push_back(workers.back() / floors.back());
      std::printf("%.3f %.3f %.2f\n", floors.back(), workers.back(), ratios.back());
    } else {
      std::printf("%.3f\n", floors.back());
    }
  }
  std::printf("median: floor %.3f ms", median(floors));
  if (argc > 4) std::printf(", worker %.3f ms, ratio %.2f", median(workers), median(ratios));
  std::printf(" (%u ranks, %d runs)\n", ranks, runs);
  fs::remove_all(dir);
  return 0;
}
