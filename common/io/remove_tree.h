// Removes a directory with everything below it, where others may replace its parts while it is
// removed. Stateless function. Any thread; blocking, for as long as the removal takes.
//
// It works on descriptors alone: no link is followed, and nothing outside the directory is removed.
// It enters no mount. A directory that something is mounted on stays, and so does everything above
// it. However deep the tree is, few descriptors are open: a directory that is not empty is first
// moved to the top of the tree.
#pragma once

#include <string>

#include "common/base/error.h"
#include "common/io/beneath.h"

namespace muster::io {

// `name` has one part: a directory in `above`, or a file or link, which is then removed itself. A
// missing one is no error. An error names the first thing that stays; the rest is removed.
Result<void> remove_tree(const Beneath& above, const std::string& name);

}  // namespace muster::io
