// apply_patches() applies patches to a tree that nobody else uses yet. It keeps no state. It
// blocks, and may run on any thread.
//
// `git apply` applies diffs (docs/decisions/0010-code-patches-by-git-apply.md).
// common/compat/code_patch applies muster's own patches.
//
// A diff is not trusted. common/compat/code_patch/unified.h first rejects what is never applied.
// git refuses names outside the tree and anything behind a symbolic link. It applies a whole patch
// or nothing, and accepts only context that matches word for word.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct PatchGround {
  std::filesystem::path tree;     // the tree to patch
  std::filesystem::path scratch;  // a directory for git's input, outside of the tree
  std::string path;               // the agent's PATH
  std::string source;             // the directory that the tree is a copy of, for messages
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Applies them in this order. Errors:
//
// - InvalidArgument: a patch does not apply (the job's fault), with patch, file and part.
// - Unsatisfiable: there is no git.
// - TimedOut, Io: a problem of this node.
Result<void> apply_patches(const google::protobuf::RepeatedPtrField<v1::CodeCopyPatch>& patches,
                           const PatchGround& ground);

}  // namespace muster::agent
