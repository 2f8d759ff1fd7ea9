// A copy of a directory tree as training code has it: files with their modes and times,
// directories, symbolic links. Blocking; any thread.
//
//   left out: .git and __pycache__ anywhere, pipes, sockets and devices, and one directory that the
//   caller names (the copy may lie below what it is made of). A link is never followed. One that
//   leads out of the tree leads to the same place from the copy (a relative one becomes absolute);
//   one that names a place in the tree absolutely names that place in the copy: what a patch
//   changes must not be reached unchanged.
//   Owners and the set-uid bits do not come along; directories can always be written by their
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
  std::filesystem::path target;  // to be made; its parent is there
  // where the copy will be used: what links into the tree are to name
  std::filesystem::path place;
  std::filesystem::path left_out;  // a directory; empty: none
};

struct TreeLimits {
  std::uint64_t bytes = 500U << 20U;
  std::size_t entries = 200'000;
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Measures first, so that a tree that is too big costs no space. Errors: NotFound, NotAllowed,
// InvalidArgument (it is no directory, or too big: with the largest files): the job's;
// ResourceExhausted: no room; TimedOut, Io: this node's trouble. What was made by then is left.
Result<void> copy_tree(const TreeCopy& copy, const TreeLimits& limits);

}  // namespace muster::agent
