// The rules of outputs.
#include <fmt/format.h>

#include "common/spec/keys/values.h"
#include "common/spec/rules/rules.h"

namespace muster::spec {

void check_outputs(Draft& draft) {
  const std::string& dir = draft.spec.output_dir();
  if (!dir.empty() && !dir.starts_with('/'))
    draft.problem(
        "outputs.dir",
        fmt::format("'{}' is not absolute (an absolute directory; empty: chosen by the controller)",
                    shown(dir)));
}

}  // namespace muster::spec
