// Keeps the contents of inputs that jobs on this node have begun with, so that a later attempt has
// the same: ROOT/cache/contents/SHA256, each named by its digest. Those of a job whose tree is
// there stay: they have another name, ROOT/jobs/JOB/INPUT.contents. Of the others, those stay that
// were used last. Plain functions on the thread of a start; they block. Agents of one machine may
// share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/store/contents.h"

namespace muster::agent {

// More that no tree has are removed: some hundred bytes for each object of each of them.
inline constexpr std::size_t kContentsMost = 500;
inline constexpr std::uint64_t kContentsBytesMost = 512ULL << 20;

// `job_dir`: ROOT/jobs/JOB, locked by the caller's turn at its trees. Errors: those of files; then
// a later attempt lists anew.
Result<void> keep_contents(const std::filesystem::path& root, const store::Contents& contents,
                           const std::filesystem::path& job_dir, const std::string& input);

// Those with this digest. None: they are not there, or not what they were.
std::optional<store::Contents> kept_contents(const std::filesystem::path& root,
                                             const std::string& sha256);

// Before the trees of a job are removed: its contents were used until now.
void touch_contents(const std::filesystem::path& job_dir);

}  // namespace muster::agent
