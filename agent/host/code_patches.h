// Puts patches on a tree that nobody else uses yet: diffs by `git apply`
// (docs/decisions/0010-code-patches-by-git-apply.md), muster's own by common/code_patch. Blocking;
// any thread.
//
// A diff is hostile: it was read before for what is never put on (common/code_patch/unified.h), and
// git refuses names out of the tree and whatever lies behind a symbolic link, puts all of a patch
// on or nothing, and takes no context that is not there word for word.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct PatchGround {
  std::filesystem::path tree;     // that they are put on
  std::filesystem::path scratch;  // a directory for what git reads, outside of the tree
  std::string path;               // the agent's PATH
  std::string source;             // of what the tree is a copy, for messages
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// In this order. Errors: InvalidArgument: it does not apply (the job's): with patch, file and part;
// Unsatisfiable: there is no git; TimedOut, Io: this node's trouble.
Result<void> apply_patches(const google::protobuf::RepeatedPtrField<v1::CodeCopyPatch>& patches,
                           const PatchGround& ground);

}  // namespace muster::agent
