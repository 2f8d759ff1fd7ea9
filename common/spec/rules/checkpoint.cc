// The rules of checkpoint.
#include <fmt/format.h>

#include "common/engine/model/layout.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {

void complete_checkpoint(Draft& draft) {
  v1::CheckpointSpec& checkpoint = *draft.spec.mutable_checkpoint();
  if (!checkpoint.dir().empty() && !checkpoint.dir().starts_with('/') &&
      !checkpoint.dir().starts_with("${out}"))
    draft.problem("checkpoint.dir",
                  fmt::format("'{}' is neither absolute nor below ${{out}} ({})",
                              shown(checkpoint.dir()), accepted_of("checkpoint.dir")));
  if (checkpoint.layout().empty() && draft.engine != nullptr)
    checkpoint.set_layout(std::string(draft.engine->layout));
  if (auto layout = engine::make_layout(checkpoint.layout()); !layout)
    draft.problem("checkpoint.layout", layout.error().message);
  if (checkpoint.storage() < v1::CHECKPOINT_STORAGE_UNSPECIFIED ||
      checkpoint.storage() > v1::CHECKPOINT_STORAGE_LOCAL)
    draft.problem("checkpoint.storage",
                  fmt::format("{} is not accepted ({})", static_cast<int>(checkpoint.storage()),
                              accepted_of("checkpoint.storage")));
}

}  // namespace muster::spec
