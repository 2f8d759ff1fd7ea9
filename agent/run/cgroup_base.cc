#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "agent/run/host_impl.h"
#include "agent/run/state_dir.h"
#include "common/process/cgroup.h"
#include "common/process/identity.h"
#include "common/process/pidfd.h"

namespace muster::agent {
namespace {

// Only making a group shows whether one can be made below `base`. Nothing of it stays.
std::string try_base(const std::filesystem::path& base) {
  const std::filesystem::path probe = base / "probe";
  if (auto made = process::make_run_group(probe); !made) return made.error().message;
  auto opened = process::Cgroup::make(probe);
  auto removed = process::remove_run_group(probe);
  return !opened ? opened.error().message : !removed ? removed.error().message : std::string();
}

// Removes bases of this instance under another node name. Nothing ran in them when the node was
// renamed: otherwise their groups are not empty, and they stay.
void remove_former(const std::filesystem::path& parent, const std::filesystem::path& base,
                   const InstanceId& instance) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() == base || !name.starts_with(process::kBasePrefix) ||
        !name.ends_with("-" + instance.str()))
      continue;
    if (auto former = process::Cgroup::make(entry.path())) (void)former->remove();
  }
}

// Who owns a base: an agent's process, and its state directory. The namespaces, the device and the
// path together identify the directory, because the same path may be another directory in other
// namespaces.
struct Owner {
  process::ProcessId agent;
  std::uint64_t processes = 0;  // namespaces
  std::uint64_t mounts = 0;
  std::uint64_t device = 0;
  std::string root;
};

std::optional<Owner> owner_now(const rundir::AgentLayout& layout) {
  const auto self = process::self();
  struct stat processes{}, mounts{}, state{};
  std::error_code error;
  const auto root = std::filesystem::canonical(layout.root(), error);
  if (!self || error || ::stat("/proc/self/ns/pid", &processes) != 0 ||
      ::stat("/proc/self/ns/mnt", &mounts) != 0 || ::stat(root.c_str(), &state) != 0) {
    return std::nullopt;
  }
  return Owner{.agent = *self,
               .processes = processes.st_ino,
               .mounts = mounts.st_ino,
               .device = state.st_dev,
               .root = root.string()};
}

std::string encode(const Owner& owner) {
  return fmt::format("{} {} {} {} {} {}", owner.agent.pid, owner.agent.start_time, owner.processes,
                     owner.mounts, owner.device, owner.root);
}

std::optional<Owner> decode_owner(const std::string& text) {
  Owner owner;
  const char *at = text.data(), *const end = at + text.size();
  const auto take = [&](auto& number) {
    const auto taken = std::from_chars(at, end, number);
    if (taken.ec != std::errc() || taken.ptr == end || *taken.ptr != ' ') return false;
    at = taken.ptr + 1;
    return true;
  };
  if (!take(owner.agent.pid) || !take(owner.agent.start_time) || !take(owner.processes) ||
      !take(owner.mounts) || !take(owner.device))
    return std::nullopt;
  owner.root.assign(at, end);
  return owner;
}

bool is_running(const process::ProcessId& agent) {
  if (agent.pid == ::getpid()) return false;  // this agent searches for what another agent has left
  const auto process = process::Pidfd::open(agent);
  return process ? !process->exited() : process.error().code != ErrorCode::NotFound;
}

// "muster-NODE-" of "muster-NODE-INSTANCE".
std::string_view before_instance(std::string_view name) {
  return name.substr(0, name.rfind('-') + 1);
}

// True if its agent has ended, and its state directory is gone or belongs to another instance. Then
// no agent can adopt its runs, whoever has the lock there now. A directory that cannot be read for
// another reason may still belong to it.
bool is_left_behind(const std::filesystem::path& base, const Owner& self) {
  const auto word = process::owner_of(base);
  const auto owner = word ? decode_owner(*word) : std::nullopt;
  if (!owner || owner->processes != self.processes || is_running(owner->agent)) return false;
  // this agent can read state directories only in its own mount namespace
  if (owner->mounts != self.mounts) return owner->device == self.device && owner->root == self.root;
  const std::string name = base.filename().string();
  const auto there = read_identity(rundir::AgentLayout(owner->root));
  return there ? name.substr(before_instance(name).size()) != there->instance.str()
               : there.error().code == ErrorCode::NotFound;
}

}  // namespace

void own_base(const std::filesystem::path& base, const rundir::AgentLayout& layout) {
  if (const auto owner = owner_now(layout)) process::note_owner(base, encode(*owner));
}

std::vector<std::filesystem::path> earlier_bases(const std::filesystem::path& base,
                                                 const rundir::AgentLayout& layout,
                                                 const InstanceId& instance) {
  std::vector<std::filesystem::path> bases;
  const auto self = owner_now(layout);
  if (!self) return bases;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() == base || !name.starts_with(process::kBasePrefix) ||
        name.ends_with("-" + instance.str()))
      continue;
    if (is_left_behind(entry.path(), *self)) bases.push_back(entry.path());
  }
  // Bases of this node's name come first: runs of one name are on many nodes of a machine.
  const std::string own = base.filename().string();
  std::ranges::stable_partition(bases, [&](const auto& one) {
    return before_instance(one.filename().string()) == before_instance(own);
  });
  return bases;
}

Result<CgroupChoice> choose_cgroup_base(const std::string& wanted, const NodeName& node,
                                        const InstanceId& instance) {
  const std::string name = process::kBasePrefix + node.str() + "-" + instance.str();
  if (wanted == "none")
    return CgroupChoice{.note =
                            "control groups are switched off: runs are swept by their process tag"};
  if (wanted != "auto") {
    if (!wanted.starts_with('/'))
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("using control group '{}': give 'auto', 'none' or an absolute directory",
                      wanted));
    const std::filesystem::path base = std::filesystem::path(wanted) / name;
    ::mkdir(wanted.c_str(), 0755);
    if (const std::string why = try_base(base); !why.empty()) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("using control group '{}': {}; give a directory of a cgroup v2 tree "
                              "that this user may write, or --cgroup none",
                              wanted, why));
    }
    remove_former(wanted, base, instance);
    return CgroupChoice{.base = base,
                        .note = fmt::format("runs get control groups below '{}'", base.string())};
  }
  auto own = process::own_cgroup();
  if (!own)
    return CgroupChoice{
        .note =
            fmt::format("no control groups ({}): runs are swept by their process tag, and a kill "
                        "for want of memory looks like any other SIGKILL",
                        own.error().message)};
  const std::filesystem::path base = *own / name;
  if (const std::string why = try_base(base); !why.empty()) {
    return CgroupChoice{
        .note =
            fmt::format("no control groups ({}): runs are swept by their process tag, and a kill "
                        "for want of memory looks like any other SIGKILL",
                        why)};
  }
  remove_former(*own, base, instance);
  return CgroupChoice{.base = base,
                      .note = fmt::format("runs get control groups below '{}'", base.string())};
}

}  // namespace muster::agent
