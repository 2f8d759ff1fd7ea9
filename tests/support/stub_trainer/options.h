// Arguments of the stub trainer, and its rank in the gang from the environment (RANK, WORLD_SIZE,
// MASTER_ADDR, MASTER_PORT). Plain values.
#pragma once

#include <cstdint>
#include <string>

namespace stub {

struct Options {
  std::int64_t steps = 10;
  // Once this file exists, it contains the last step, which replaces --steps: a test ends the
  // training when it has done its own part.
  std::string end_file;
  double step_ms = 0;
  std::string save;
  std::string load;
  std::int64_t save_interval = 0;
  std::size_t shard_bytes = 4096;
  // How long the writing of a shard takes, so that a kill can occur in the middle.
  double save_ms = 0;
  bool ignore_sigterm = false;
  std::int64_t exit_at = -1;  // --exit-code-at STEP[:CODE] on --fail-rank
  int exit_code = 1;
  std::int64_t hang_at = -1;  // --hang-at STEP on --fail-rank
  std::uint32_t fail_rank = 0;
  unsigned children = 0;    // grandchildren that become daemons
  std::uint64_t lines = 0;  // self-numbered lines for each step
  std::size_t line_bytes = 80;
  std::int64_t truncate_at = -1;  // cuts its own standard output to nothing at that step
  std::string trace;              // directory
  std::string stamp;              // file (stamp.h)
  bool block = false;             // does nothing until it is killed
  bool barrier = true;            // --no-barrier
  std::uint64_t seed = 1;

  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 0;  // 0: no barrier
};

// Exits with status 2 and a sentence on a mistake, like argparse.
Options parse(int argc, char** argv);

}  // namespace stub
