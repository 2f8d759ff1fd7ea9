// copy_tree() copies a directory tree of training code: files with their modes and times,
// directories, symbolic links. It keeps no state. It blocks, and may run on any thread.
//
// - Left out are .git and __pycache__ at any depth, pipes, sockets, devices, and one directory that
//   the caller names (the copy may be below its source).
// - A link is never followed.
// - A link that leads out of the tree leads to the same target from the copy: a relative one
//   becomes absolute.
// - A link that names a path in the tree absolutely names that path in the copy. Otherwise it would
//   lead to the unpatched file.
// - Owners and the set-uid bits are not copied. Every directory of the copy is writable for its
//   owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "common/base/error.h"

namespace muster::agent {

struct TreeCopy {
  std::filesystem::path source;
  std::filesystem::path target;  // does not exist yet; its parent does
  // the path where the copy will be used; links into the tree get this prefix
  std::filesystem::path place;
  std::filesystem::path left_out;  // a directory; empty: none
};

struct TreeLimits {
  std::uint64_t bytes = 500U << 20U;
  std::size_t entries = 200'000;
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Measures first, so that a tree that is too big takes no space. What was copied before an error
// stays. Errors:
//
// - NotFound, NotAllowed, InvalidArgument (not a directory, or too big: names the largest files):
//   the job's fault.
// - ResourceExhausted: no space.
// - TimedOut, Io: a problem of this node.
Result<void> copy_tree(const TreeCopy& copy, const TreeLimits& limits);

}  // namespace muster::agent
