// Bytes of a rank table of version 1.0 or 1.2 -> RankTable, as HCCL's reader takes them: every
// scalar is a JSON string, unknown keys are kept and ignored. Every problem is reported at once
// with its place. Pure.
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

// What HCCL looks at first.
struct Head {
  Form form = Form::Table;
  std::string status;   // "completed", or whatever it is before that
  std::string version;  // of a Table
  bool completed = false;
};
// Errors: not JSON, not an object, no status, a version that is no string.
Result<Head> read_head(const Json& document);

// The reader's rules on types, numbers and counts; check() has the others. The table is whole only
// when there is no problem.
RankTable read_table(const Json& document, Version version, Findings& found);

// Adds what check() says to what reading found; nothing where the reader found no server at all.
void add_rules(const RankTable& table, std::optional<Chip> chip, Findings& found);

// A completed and sound table of version 1.0 or 1.2, or one sentence with every problem. What is
// not completed yet is ErrorCode::Unsatisfiable.
Result<RankTable> load_table(std::string_view text);

}  // namespace muster::ranktable
