// The files of a checkpoint that is uploaded while its job goes on: hard links to them, so that the
// job may delete the checkpoint meanwhile. Plain functions; they block. They have the rights of the
// job's user, who may replace what is there.
//
//   OUT/.muster-upload/JOB.ATTEMPT.STEP/NAME    a link to OUT/NAME
//   STATE_DIR/frozen/JOB.ATTEMPT.STEP           what the files were then (sent_files.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "agent/core/reconcile.h"
#include "agent/launch/user_entry.h"
#include "agent/outputs/sent_files.h"
#include "common/base/error.h"

namespace muster::agent {

inline constexpr std::string_view kFrozenDir = ".muster-upload";

struct CheckpointPlace {
  std::string out;       // absolute
  std::string save_dir;  // absolute
  std::string layout;
  RunKey run;
  std::int64_t step = 0;
  std::filesystem::path records;  // STATE_DIR/frozen

  [[nodiscard]] std::string name() const;  // "JOB.ATTEMPT.STEP"
};

// "checkpoints/attempt-1": where the save directory is below OUT. InvalidArgument: it is not there.
Result<std::string> below_out(const CheckpointPlace& place);

// Where its files can be read from.
struct CheckpointFiles {
  std::string dir;  // OUT, where the file system has no hard links
  SentFiles files;  // by their names below it, and below OUT; what they were when they were frozen
};
// The same files now. DataLoss: one of them was written meanwhile, or is gone. NotAllowed: the
// user's rights are not to be had.
Result<SentFiles> unchanged(const CheckpointFiles& checkpoint, const UserEntry* owner);

// Makes the links; those that an earlier agent has made, with their record, stay. InvalidArgument:
// the checkpoint is not below OUT. NotFound: it is gone. DataLoss: something else has the place of
// the directory. NotAllowed, Io, ResourceExhausted: those of files.
Result<CheckpointFiles> freeze_checkpoint(const CheckpointPlace& place, const UserEntry* owner);

// The engine's own mark for this checkpoint alone, by its name below OUT. Empty: its layout has
// none. Errors: those of below_out(); NotAllowed, DataLoss: as of freeze_checkpoint().
Result<std::map<std::string, std::string>> marks_of(const CheckpointPlace& place,
                                                    const UserEntry* owner);

void thaw_one(const CheckpointPlace& place, const UserEntry* owner);
// Removes all of the job but these.
void thaw(const std::string& out, const JobId& job, const std::filesystem::path& records,
          const std::set<std::string>& kept, const UserEntry* owner);

}  // namespace muster::agent
