// Judges one whole file: would HCCL accept it? Pure.
//
// `muster ranktable check` prints the result, and a table of the user's own must be accepted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/findings.h"

namespace muster::ranktable {

enum class Verdict : std::uint8_t {
  Acceptable,
  NotCompleted,  // readers read again every second for half an hour
  Rejected,
};
std::string_view to_string(Verdict verdict);  // "acceptable", "not completed", "rejected"

struct Judgement {
  Verdict verdict = Verdict::Rejected;
  std::string form;    // "version 1.0", "group list"; empty = not known
  std::string status;  // as written in the file
  std::size_t servers = 0, ranks = 0;
  Findings findings;
};

// `chip` none: the rules that hold on all chips. A group list is judged as a 910's unless another
// chip is named.
Judgement judge(std::string_view text, std::optional<Chip> chip);

}  // namespace muster::ranktable
