#include <algorithm>
#include <array>

#include "common/engine/rows.h"

namespace muster::engine {

std::span<const Engine> engine_table() {
  static const std::array<Engine, 2> table = {{
      {.name = "torch",
       .summary = "PyTorch training: torchrun's worker variables for every rank, Megatron-LM's checkpoints and log lines where there are any",
       .grammar = "auto",
       .layout = "megatron",
       .lockstep = true,
       .identity = torch_identity(),
       .launch = launch_torch},
      {.name = "command",
       .summary = "any program: only the neutral MUSTER_* variables",
       .grammar = "auto",
       .layout = "megatron",
       .lockstep = false,
       .identity = {},
       .launch = launch_command},
  }};
  return table;
}

const Engine* find_engine(std::string_view name) {
  const auto table = engine_table();
  const auto found = std::ranges::find(table, name, &Engine::name);
  return found == table.end() ? nullptr : &*found;
}

bool is_identity(const Engine& engine, std::string_view variable) {
  return variable.starts_with("MUSTER_") || std::ranges::find(engine.identity, variable) != engine.identity.end();
}

}  // namespace muster::engine
