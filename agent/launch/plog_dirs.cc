#include "agent/launch/plog_dirs.h"

#include "common/io/beneath.h"
#include "common/rundir/records.h"

namespace muster::agent {

Result<void> make_plog_dirs(const v1::NodeLaunch& order, const rundir::RunLayout& layout) {
  std::optional<io::Beneath> plog;
  for (const v1::RankProcess& rank : order.ranks()) {
    if (rank.plog_dir().empty()) continue;
    const std::filesystem::path dir = layout.plog_dir(rank.rank());
    if (!plog) {
      const std::string name = dir.parent_path().filename().string();
      const auto run = rundir::open_run(layout);
      if (!run) return fail(Error(run.error()).in("making the process logs' directories"));
      if (auto made = run->make_dir(name, 0700); !made) return made;
      auto opened = run->below(name);
      if (!opened) return fail(std::move(opened.error()));
      plog = std::move(*opened);
    }
    if (auto made = plog->make_dir(dir.filename().string(), 0700); !made) return made;
  }
  return {};
}

}  // namespace muster::agent
