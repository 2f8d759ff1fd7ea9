// Expands a range in a name: "node[01-03,7]" is node01 node02 node03 node7. Pure.
//
// A number is written with as many digits as the first one of its range has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::hosts {

[[nodiscard]] bool has_range(std::string_view text);

// At most `most` names. A text without a range is itself. Errors are InvalidArgument: two ranges, a
// bracket that is not closed, a range that runs backwards, too many names.
Result<std::vector<std::string>> expand_range(std::string_view text, std::size_t most);

}  // namespace muster::hosts
