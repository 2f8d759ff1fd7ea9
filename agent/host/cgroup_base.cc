#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "agent/host/host.h"
#include "common/process/cgroup.h"

namespace muster::agent {
namespace {

// Whether a group can be made below `base` (which is made if need be) is only known by making one.
std::string try_base(const std::filesystem::path& base) {
  if (::mkdir(base.c_str(), 0755) != 0 && errno != EEXIST) return fmt::format("making '{}': {}", base.string(), std::generic_category().message(errno));
  auto probe = process::Cgroup::make(base / "probe");
  if (!probe) return probe.error().message;
  if (auto removed = probe->remove(); !removed) return removed.error().message;
  return {};
}

}  // namespace

Result<CgroupChoice> choose_cgroup_base(const std::string& wanted, const NodeName& node) {
  if (wanted == "none") return CgroupChoice{.note = "control groups are switched off: runs are swept by their cookie"};
  if (wanted != "auto") {
    if (!wanted.starts_with('/'))
      return fail(ErrorCode::InvalidArgument, fmt::format("using control group '{}': give 'auto', 'none' or an absolute directory", wanted));
    if (const std::string why = try_base(wanted); !why.empty()) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("using control group '{}': {}; give a directory of a cgroup v2 tree that this user may write, or --cgroup none", wanted, why));
    }
    return CgroupChoice{.base = wanted, .note = fmt::format("runs get control groups below '{}'", wanted)};
  }
  auto own = process::own_cgroup();
  if (!own)
    return CgroupChoice{.note =
                            fmt::format("no control groups ({}): runs are swept by their cookie, and a kill for want of memory looks like any other SIGKILL",
                                        own.error().message)};
  const std::filesystem::path base = *own / ("muster-" + node.str());
  if (const std::string why = try_base(base); !why.empty()) {
    return CgroupChoice{
        .note = fmt::format("no control groups ({}): runs are swept by their cookie, and a kill for want of memory looks like any other SIGKILL", why)};
  }
  return CgroupChoice{.base = base, .note = fmt::format("runs get control groups below '{}'", base.string())};
}

}  // namespace muster::agent
