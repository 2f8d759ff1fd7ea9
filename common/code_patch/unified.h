// What a unified diff (git's, or that of diff -u) says that it changes: for refusing early what is
// never put on, for showing it, and for naming the part that does not fit. Putting it on is git's
// work (agent/host/code_patches.h), which looks at every name again. Names are without their first
// part ("a/x.py" is "x.py"), as `git apply` and `patch -p1` take them. Hostile input: bounds on all
// that is kept. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::code_patch {

inline constexpr std::size_t kFilesMax = 10'000;  // of one diff

struct DiffFile {
  std::string name;      // as it is afterwards; of one that goes away, as it was
  std::string old_name;  // of one that is renamed; else empty
  bool created = false;
  bool deleted = false;
  std::uint64_t added = 0;  // lines
  std::uint64_t removed = 0;
  std::vector<std::uint64_t> hunks;  // line of the old file that each begins at
};

// The files in order, at least one. An error (InvalidArgument) says what is wrong with which line:
// nothing to change, a hunk that is cut off, a name that is absolute or leads out of the code, a
// symbolic link, a binary file.
Result<std::vector<DiffFile>> read_diff(std::string_view text);

// "is absolute", "leaves the code by '..'"...; empty: a name of a file below the code.
std::string wrong_name(std::string_view name);

}  // namespace muster::code_patch
