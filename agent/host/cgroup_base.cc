#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include "agent/host/host_impl.h"
#include "common/process/cgroup.h"
#include "common/process/identity.h"
#include "common/process/pidfd.h"

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

// "PID START_TIME PLACE" of an agent. PLACE is its state directory as nobody else has it: in other namespaces the same words may mean another one.
std::string place_of(const rundir::AgentLayout& layout) {
  struct stat processes{}, state{};
  if (::stat("/proc/self/ns/pid", &processes) != 0 || ::stat(layout.root().c_str(), &state) != 0) return {};
  return fmt::format("{}:{}:{}", processes.st_ino, state.st_dev, layout.root().string());
}

bool is_running(const process::ProcessId& agent) {
  if (agent.pid == ::getpid()) return false;  // it asks for what another than itself has left
  const auto process = process::Pidfd::open(agent);
  return process ? !process->exited() : process.error().code != ErrorCode::NotFound;
}

// Whoever has the lock of that state directory now, it is not the agent whose base this is.
bool is_left_behind(const std::string& owner, const std::string& place) {
  process::ProcessId agent;
  const char* const end = owner.data() + owner.size();
  const auto pid = std::from_chars(owner.data(), end, agent.pid);
  if (pid.ec != std::errc() || pid.ptr == end) return false;
  const auto start = std::from_chars(pid.ptr + 1, end, agent.start_time);
  if (start.ec != std::errc() || start.ptr == end) return false;
  return !place.empty() && std::string_view(start.ptr + 1, end) == place && !is_running(agent);
}

}  // namespace

void own_base(const std::filesystem::path& base, const rundir::AgentLayout& layout) {
  if (const auto self = process::self()) process::note_owner(base, fmt::format("{} {} {}", self->pid, self->start_time, place_of(layout)));
}

std::vector<std::filesystem::path> earlier_bases(const std::filesystem::path& base, const rundir::AgentLayout& layout, const InstanceId& instance) {
  std::vector<std::filesystem::path> bases;
  const std::string place = place_of(layout);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() == base || !name.starts_with(process::kBasePrefix) || name.ends_with("-" + instance.str())) continue;
    if (const auto owner = process::owner_of(entry.path()); owner && is_left_behind(*owner, place)) bases.push_back(entry.path());
  }
  return bases;
}

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
