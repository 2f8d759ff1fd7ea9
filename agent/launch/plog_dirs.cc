#include "agent/launch/plog_dirs.h"

#include <sys/stat.h>

#include <cerrno>

namespace muster::agent {

Result<void> make_plog_dirs(const v1::NodeLaunch& order, const rundir::RunLayout& layout) {
  const auto make = [](const std::filesystem::path& dir) -> Result<void> {
    if (::mkdir(dir.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return fail_errno("making the process log's directory '" + dir.string() + "'", errno);
  };
  for (const v1::RankProcess& rank : order.ranks()) {
    if (rank.plog_dir().empty()) continue;
    if (auto made = make(layout.plog_dir(rank.rank()).parent_path()); !made) return made;
    if (auto made = make(layout.plog_dir(rank.rank())); !made) return made;
  }
  return {};
}

}  // namespace muster::agent
