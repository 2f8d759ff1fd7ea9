// Reads the bytes of a rank table of version 1.0 or 1.2 into a RankTable, as HCCL's reader does.
// Pure.
//
// Every scalar is a JSON string. Unknown keys are kept and ignored. All problems are reported
// together, each with its path.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

enum class Form : std::uint8_t { Table, GroupList };  // with a version key, without one

// The keys that HCCL reads first.
struct Head {
  Form form = Form::Table;
  std::string status;   // "completed", or another text before that
  std::string version;  // only for a Table
  bool completed = false;
};
// Errors: not JSON, not an object, no status, or a version that is no string.
Result<Head> read_head(const Json& document);

// Checks the reader's rules on types, numbers and counts; check() has the other rules. The table is
// whole only if there is no problem.
RankTable read_table(const Json& document, Version version, Findings& found);

// Adds the findings of check() to those of the reader. Adds nothing if the reader found no server
// and reported a problem.
void add_rules(const RankTable& table, std::optional<Chip> chip, Findings& found);

// A completed and sound table of version 1.0 or 1.2, or one text with every problem. A table that
// is not completed yet gives ErrorCode::Unsatisfiable.
Result<RankTable> load_table(std::string_view text);

}  // namespace muster::ranktable
