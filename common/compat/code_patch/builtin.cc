#include "common/compat/code_patch/builtin.h"

#include <algorithm>
#include <array>

namespace muster::code_patch {

std::span<const Builtin> builtins() {
  static constexpr auto kTable = std::to_array<Builtin>({
      {.name = "node-local-index",
       .summary = "every node builds the index files of its data sets, and the C++ helpers, on its "
                  "own disk",
       .files = "megatron/core/datasets/*_dataset.py, megatron/training/initialize.py",
       .make = node_local_index},
  });
  return kTable;
}

const Builtin* find_builtin(std::string_view name) {
  const auto table = builtins();
  const auto found = std::ranges::find(table, name, &Builtin::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace muster::code_patch
