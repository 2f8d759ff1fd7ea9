// The files of a checkpoint that is uploaded while its job goes on: hard links to them, so that the
// job may delete the checkpoint meanwhile. Plain functions; they block. They have the rights of the
// job's user.
//
//   OUT/.muster-upload/ATTEMPT.STEP/NAME    a link to OUT/NAME
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "agent/launch/user_entry.h"
#include "agent/outputs/sent_files.h"
#include "common/base/error.h"

namespace muster::agent {

inline constexpr std::string_view kFrozenDir = ".muster-upload";

struct CheckpointPlace {
  std::string out;       // absolute
  std::string save_dir;  // absolute
  std::string layout;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;

  [[nodiscard]] std::string frozen_name() const;  // "ATTEMPT.STEP"
};

// Where its files can be read from.
struct CheckpointFiles {
  std::string dir;  // OUT, where the file system has no hard links
  SentFiles files;  // by their names below it, and below OUT; what they were when they were frozen
};
// The same files now. DataLoss: one of them was written meanwhile, or is gone. NotAllowed: the
// user's rights are not to be had.
Result<SentFiles> unchanged(const CheckpointFiles& checkpoint, const UserEntry* owner);

// Makes the links, if they are not there. InvalidArgument: the checkpoint is not below OUT.
// NotFound: it is gone. NotAllowed, Io, ResourceExhausted: those of files.
Result<CheckpointFiles> freeze_checkpoint(const CheckpointPlace& place, const UserEntry* owner);

// Writes the engine's own mark for this checkpoint alone. Without files: its layout has none.
Result<CheckpointFiles> write_seal(const CheckpointPlace& place, const UserEntry* owner);

void thaw_one(const CheckpointPlace& place, const UserEntry* owner);
// Removes all of them but these.
void thaw(const std::string& out, const std::set<std::string>& kept, const UserEntry* owner);

}  // namespace muster::agent
