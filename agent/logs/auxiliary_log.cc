#include "agent/logs/auxiliary_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "agent/launch/with_rights.h"
#include "agent/logs/evidence.h"
#include "agent/logs/logs_dir.h"
#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::agent {

std::vector<std::string> auxiliary_logs(const v1::NodeLaunch& order) {
  std::vector<std::string> names;
  for (const v1::AuxiliaryProcess& auxiliary : order.auxiliaries()) {
    if (rundir::is_auxiliary_name(auxiliary.name()) && auxiliary.name() != rundir::kSetupLog)
      names.push_back(auxiliary.name());
  }
  if (order.has_setup()) names.emplace_back(rundir::kSetupLog);
  return names;
}

ScriptLog script_log(const ScriptLogSeen& seen) {
  ScriptLog log{
      .name = seen.name,
      .rank = seen.rank,
      .process = {.pid = static_cast<pid_t>(seen.pid), .start_time = seen.start_time},
      .path = seen.path,
      .mount = seen.mount,
      .root = {.pid = static_cast<pid_t>(seen.root_pid), .start_time = seen.root_start_time},
      .rights = {}};
  if (!seen.user) return log;
  log.rights = rights_of({.name = {},
                          .home = {},
                          .uid = seen.user->uid,
                          .gid = seen.user->gid,
                          .groups = seen.user->groups});
  return log;
}

std::string evidence_of_log(const std::filesystem::path& log) {
  constexpr off_t kTail = 64 << 10;
  const io::UniqueFd fd = LogsDir(log.parent_path()).open(log.filename().string(), O_RDONLY);
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const off_t from = std::max<off_t>(0, info.st_size - kTail);
  std::string tail(static_cast<std::size_t>(info.st_size - from), '\0');
  const ssize_t count = ::pread(fd.get(), tail.data(), tail.size(), from);
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return best_evidence(tail);
}

}  // namespace muster::agent
