#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "agent/host/host.h"
#include "common/process/cgroup.h"

namespace muster::agent {
namespace {

// Whether a group can be made below `base` is only known by making one. Nothing of it stays.
std::string try_base(const std::filesystem::path& base) {
  const std::filesystem::path probe = base / "probe";
  if (auto made = process::make_run_group(probe); !made) return made.error().message;
  auto opened = process::Cgroup::make(probe);
  auto removed = process::remove_run_group(probe);
  return !opened ? opened.error().message : !removed ? removed.error().message : std::string();
}

// Of this instance under another node name: it ran nothing any more when it was renamed, or its groups would not be empty.
void remove_former(const std::filesystem::path& parent, const std::filesystem::path& base, const InstanceId& instance) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() == base || !name.starts_with(process::kBasePrefix) || !name.ends_with("-" + instance.str())) continue;
    if (auto former = process::Cgroup::make(entry.path())) (void)former->remove();
  }
}

}  // namespace

Result<CgroupChoice> choose_cgroup_base(const std::string& wanted, const NodeName& node, const InstanceId& instance) {
  const std::string name = process::kBasePrefix + node.str() + "-" + instance.str();
  if (wanted == "none") return CgroupChoice{.note = "control groups are switched off: runs are swept by their cookie"};
  if (wanted != "auto") {
    if (!wanted.starts_with('/'))
      return fail(ErrorCode::InvalidArgument, fmt::format("using control group '{}': give 'auto', 'none' or an absolute directory", wanted));
    const std::filesystem::path base = std::filesystem::path(wanted) / name;
    ::mkdir(wanted.c_str(), 0755);
    if (const std::string why = try_base(base); !why.empty()) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("using control group '{}': {}; give a directory of a cgroup v2 tree that this user may write, or --cgroup none", wanted, why));
    }
    remove_former(wanted, base, instance);
    return CgroupChoice{.base = base, .note = fmt::format("runs get control groups below '{}'", base.string())};
  }
  auto own = process::own_cgroup();
  if (!own)
    return CgroupChoice{.note =
                            fmt::format("no control groups ({}): runs are swept by their cookie, and a kill for want of memory looks like any other SIGKILL",
                                        own.error().message)};
  const std::filesystem::path base = *own / name;
  if (const std::string why = try_base(base); !why.empty()) {
    return CgroupChoice{
        .note = fmt::format("no control groups ({}): runs are swept by their cookie, and a kill for want of memory looks like any other SIGKILL", why)};
  }
  remove_former(*own, base, instance);
  return CgroupChoice{.base = base, .note = fmt::format("runs get control groups below '{}'", base.string())};
}

}  // namespace muster::agent
