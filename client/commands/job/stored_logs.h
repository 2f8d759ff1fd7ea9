// Reads logs from a directory that has what outputs.logs_to has made for one job, or from a copy of
// it: the directories attempt-N (common/store/log_segment.h). Nothing else is needed, no controller
// either. Stateless functions; they block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "client/commands/follow/log_label.h"
#include "common/base/error.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

struct StoredLog {
  LogLabel label;  // of a rank, or of another process
  std::filesystem::path dir;
};

// Logs of ranks and of other processes, without process logs: by attempt, ranks first. NotFound:
// the directory has none.
Result<std::vector<StoredLog>> find_stored_logs(const std::filesystem::path& dir);
// The same from the names of all files below that directory; `dir` is then below it, too.
Result<std::vector<StoredLog>> stored_logs_of(const std::vector<std::string>& names);

using TakeLog = std::function<void(const v1::ReadLogsResponse&)>;
// Gives its bytes, and says where some are missing. `tail`: only so many of its last lines; 0: all.
// DataLoss: a segment is damaged; what was before it was given.
Result<void> read_stored_log(const StoredLog& log, std::uint64_t tail, const TakeLog& take);

}  // namespace muster::client
