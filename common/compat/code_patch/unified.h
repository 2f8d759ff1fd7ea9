// Reads which changes a unified diff (from git or diff -u) describes. The result serves to refuse a
// patch early, to show it, and to name the hunk that does not fit. Pure.
//
// git applies the diff (agent/code/code_patches.h), and that code checks every name again. Names
// are without their first part ("a/x.py" is "x.py"), as in `git apply` and `patch -p1`. Hostile
// input: the length of names and the number of files are bounded.
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
  std::string name;      // name after the change; for a deleted file, its old name
  std::string old_name;  // of a renamed file; otherwise empty
  bool created = false;
  bool deleted = false;
  std::uint64_t added = 0;  // lines
  std::uint64_t removed = 0;
  std::vector<std::uint64_t> hunks;  // first line of each hunk in the old file
};

// The files in order, at least one. An error (InvalidArgument) names the line and the problem: no
// change, a hunk that is cut off, a name that is absolute or leads out of the code, a symbolic
// link, a binary file.
Result<std::vector<DiffFile>> read_diff(std::string_view text);

// "is absolute", "leaves the code by '..'"...; empty: a valid name of a file below the code.
std::string wrong_name(std::string_view name);

}  // namespace muster::code_patch
