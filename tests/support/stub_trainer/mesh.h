// The stub's process group. main() of the stub owns it. It blocks on the process's one thread.
//
// Rank 0 listens at MASTER_ADDR:MASTER_PORT as c10d's store does, and the others connect. One
// exchange for each step keeps all ranks in lockstep. A lost peer ends this process with status 1
// and a last line like that of a traceback, as a real trainer would end.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/stub_trainer/options.h"

namespace stub {

class Mesh {
 public:
  explicit Mesh(const Options& options);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh();
  // Returns the sum of all ranks' `value` of this step: the same number in every rank. Returns when
  // all ranks have called it.
  std::uint64_t sum(std::int64_t step, std::uint64_t value);

 private:
  void listen_for_peers();
  void connect_to_master();
  const Options& options_;
  bool alone_;
  std::vector<int> peers_;  // rank 0: by rank - 1; the others: the master
};

[[noreturn]] void die_like_python(const Options& options, const char* error);

}  // namespace stub
