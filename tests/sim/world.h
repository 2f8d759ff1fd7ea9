// Everything of one history: it is made from a seed, and runs to its end or to the first broken
// invariant. main() of muster-sim makes one World for each history. A World runs on one thread.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/sim/client_model.h"
#include "tests/sim/controller_model.h"
#include "tests/sim/coverage.h"
#include "tests/sim/machine.h"
#include "tests/sim/mutant.h"
#include "tests/sim/network.h"
#include "tests/sim/operator_model.h"
#include "tests/sim/random.h"
#include "tests/sim/scenario.h"
#include "tests/sim/storm.h"
#include "tests/sim/timeline.h"
#include "tests/sim/training.h"
#include "tests/sim/watch.h"

namespace muster::sim {

inline constexpr Time kWallStart = 1'800'000'000 * kSecond;

struct History {
  std::uint64_t seed = 0;
  std::uint64_t deeds = 0;
  Time lasted = 0;
  std::optional<Violation> violation;
  Coverage coverage;
};

class World {
 public:
  World(const Knobs& knobs, Mutant broken, bool tell);
  History run();

  Rng rng;
  Scenario scenario;
  const Mutant mutant;
  const bool trace;
  Timeline timeline;
  Coverage coverage;
  Watch watch;
  Network network;
  Training training;
  std::vector<std::unique_ptr<Machine>> machines;
  ControllerModel controller;
  ClientModel client;
  OperatorModel operators;
  Storm storm;

  Machine& machine(const NodeName& name);
  // A part of an ended job that the controller still waits for, although nobody will report more
  // about it. Nothing: every ended job may be archived.
  [[nodiscard]] std::optional<std::string> left_open();
  // Writes one line of the trace. `text` is called only if the trace is on.
  template <class Text>
  void say(Text text) {
    if (trace) print(text());
  }

 private:
  void print(const std::string& text) const;
};

std::string describe(const agent::RunKey& run);
std::string describe(const Process& process);

}  // namespace muster::sim
