#include "agent/container/container_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

// The target is the same path in the container if `target` is empty.
struct VendorMount {
  std::string_view source, target;
  bool read_only = true;
};
constexpr auto kVendorMounts = std::to_array<VendorMount>({
    {.source = "/usr/local/Ascend/driver", .target = {}},  // includes its tools
    {.source = "/usr/local/bin/npu-smi", .target = {}},
    {.source = "/usr/local/dcmi", .target = {}},
    {.source = "/etc/ascend_install.info", .target = {}},
    {.source = "/etc/hccn.conf", .target = {}},
    {.source = "/var/log/npu", .target = "/usr/slog", .read_only = false},
    {.source = "/etc/localtime", .target = {}},
});
constexpr auto kAscendDevices =
    std::to_array<std::string_view>({"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"});
// Each mount uses one of these; no path contains a comma.
constexpr std::string_view kMount = "--mount", kSource = "type=bind,source=", kTarget = ",target=",
                           kReadOnly = ",readonly";
constexpr std::string_view kUntellable = ",\"\n";  // these cannot be in a comma-separated list
constexpr std::string_view kNvidia = "/dev/nvidiactl";

bool is_below(std::string_view path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && path.substr(dir.size()).starts_with('/'));
}

// Returns the worker's own file or directory that a mount would cover; nothing may cover it. Empty:
// none. A mount of a directory above them at the same path is allowed, because they are mounted
// over it. At another path the tool would create them inside the mounted directory.
std::string covered_by(const std::string& source, const std::string& target,
                       const ContainerRun& run) {
  if (is_below(target, run.directory) || (source != target && is_below(run.directory, target)))
    return run.directory;
  return target == run.worker || (source != target && is_below(run.worker, target)) ? run.worker
                                                                                    : std::string();
}

class Mounts {
 public:
  void add(const std::string& source, const std::string& target, bool read_only) {
    if (bad_.empty() && source.find_first_of(kUntellable) != std::string::npos) bad_ = source;
    if (bad_.empty() && target.find_first_of(kUntellable) != std::string::npos) bad_ = target;
    if (!targets_.insert(target).second) return;
    // Not --volume: docker creates a directory if the source does not exist.
    words_.insert(words_.end(),
                  {std::string(kMount), fmt::format("{}{}{}{}{}", kSource, source, kTarget, target,
                                                    read_only ? kReadOnly : "")});
  }
  [[nodiscard]] const std::string& bad() const { return bad_; }
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  std::set<std::string> targets_;
  std::vector<std::string> words_;
  std::string bad_;
};

std::string trimmed(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// Returns the job's directory that a mount from elsewhere would hide; the job would then write to
// another directory. Empty: none. A mount above all of the job's directories at the same path is
// allowed, because they are mounted over it.
std::string hidden_by(const v1::ContainerMount& mount, const v1::NodeLaunch& order) {
  if (mount.target().empty() || mount.source() == mount.target()) return {};
  const bool inside = std::ranges::any_of(order.make_dirs(), [&](const std::string& dir) {
    return is_below(mount.target(), trimmed(dir));
  });
  if (!inside) return {};
  const auto hidden = std::ranges::find_if(order.make_dirs(), [&](const std::string& dir) {
    return is_below(trimmed(dir), mount.target());
  });
  return hidden == order.make_dirs().end() ? std::string() : trimmed(*hidden);
}

// If directories contain one another, only the topmost are mounted.
void add_made(Mounts& mounts, const v1::NodeLaunch& order) {
  std::set<std::string> dirs;
  for (const std::string& dir : order.make_dirs()) dirs.insert(trimmed(dir));
  if (order.has_resume())
    dirs.insert({trimmed(order.resume().source()),
                 trimmed(std::filesystem::path(order.resume().dir()).parent_path().string())});
  dirs.erase("");
  for (const std::string& dir : dirs) {
    const bool inside = std::ranges::any_of(
        dirs, [&](const std::string& other) { return other != dir && is_below(dir, other); });
    if (!inside) mounts.add(dir, dir, false);
  }
}

bool uses_nvidia(const v1::NodeLaunch& order) {
  constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  return order.env().contains(kVariable) ||
         std::ranges::any_of(order.ranks(), [kVariable](const v1::RankProcess& rank) {
           return rank.env().contains(kVariable);
         });
}

std::string limit_text(std::uint64_t value) {
  return value == UINT64_MAX ? "-1" : std::to_string(value);
}

void add_devices(std::vector<std::string>& words, const v1::NodeLaunch& order,
                 const ContainerTool& tool, const ContainerNode& node) {
  for (const std::string& card : node.cards) words.insert(words.end(), {"--device", card});
  for (const std::string_view device : kAscendDevices)
    if (!node.cards.empty() && node.there.contains(std::string(device)))
      words.insert(words.end(), {"--device", std::string(device)});
  if (!uses_nvidia(order) || !node.there.contains(std::string(kNvidia))) return;
  if (tool.docker)
    words.insert(words.end(), {"--gpus", "all"});
  else
    words.insert(words.end(), {"--device", "nvidia.com/gpu=all"});
}

// Calls `act` with source and target of each mount.
template <class Act>
void each_mount(const rundir::v1::ContainerLaunch& container, const Act& act) {
  for (int i = 0; i + 1 < container.argv_size(); ++i) {
    std::string_view mount = container.argv(i + 1);
    if (container.argv(i) != kMount || !mount.starts_with(kSource)) continue;
    mount.remove_prefix(kSource.size());
    const std::size_t comma = mount.find(kTarget);
    if (comma == std::string_view::npos) continue;
    std::string_view target = mount.substr(comma + kTarget.size());
    if (target.ends_with(kReadOnly)) target.remove_suffix(kReadOnly.size());
    act(mount.substr(0, comma), target);
  }
}

}  // namespace

std::span<const std::string_view> probed_paths() {
  static const std::vector<std::string_view> paths = [] {
    std::vector<std::string_view> all(kAscendDevices.begin(), kAscendDevices.end());
    for (const VendorMount& mount : kVendorMounts) all.push_back(mount.source);
    all.push_back(kNvidia);
    return all;
  }();
  return paths;
}

Result<std::vector<std::string>> container_command(const v1::NodeLaunch& order,
                                                   const ContainerTool& tool,
                                                   const ContainerNode& node,
                                                   const ContainerRun& run) {
  Mounts mounts;
  mounts.add(run.directory, run.directory, false);
  mounts.add(run.worker, run.worker, true);
  for (const v1::ContainerMount& mount : order.container().mounts()) {
    const std::string& target = mount.target().empty() ? mount.source() : mount.target();
    if (mount.target().empty() && !node.there.contains(mount.source())) continue;
    if (const std::string covered = covered_by(mount.source(), target, run); !covered.empty())
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("mounting '{}' at '{}': muster's own '{}' is there; mount it elsewhere",
                      mount.source(), target, covered));
    if (const std::string hidden = hidden_by(mount, order); !hidden.empty())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("mounting '{}' at '{}': the job's own directory '{}' would be hidden "
                              "by it, where muster looks for what the job writes; mount it "
                              "elsewhere",
                              mount.source(), target, hidden));
    mounts.add(mount.source(), target, mount.read_only());
  }
  add_made(mounts, order);
  for (const VendorMount& mount : kVendorMounts) {
    if (node.there.contains(std::string(mount.source)))
      mounts.add(std::string(mount.source),
                 std::string(mount.target.empty() ? mount.source : mount.target), mount.read_only);
  }
  if (!mounts.bad().empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("mounting '{}': it has a ',', a '\"' or a line feed in it, which "
                            "podman and docker do not accept",
                            mounts.bad()));

  std::vector<std::string> words = {tool.program};
  words.insert(words.end(), tool.args.begin(), tool.args.end());
  words.insert(words.end(), {"run",
                             "--rm",
                             "--name",
                             run.name,
                             "--pull",
                             "never",
                             "--log-driver",
                             "none",
                             "--no-healthcheck",
                             "--stop-timeout",
                             "0",
                             "--network",
                             "host",
                             "--ipc",
                             "host",
                             "--pid",
                             "host",
                             "--userns",
                             "host",
                             "--security-opt",
                             "label=disable",
                             "--pids-limit",
                             "-1",
                             "--user",
                             node.user,
                             "--workdir",
                             "/",
                             "--env",
                             fmt::format("{}={}", rundir::kProcessTagVariable, run.process_tag)});
  if (!order.secrets().empty()) words.emplace_back("--interactive");  // the worker reads them there
  for (const ContainerLimit& limit : node.limits)
    words.insert(words.end(),
                 {"--ulimit", fmt::format("{}={}:{}", limit.name, limit_text(limit.soft),
                                          limit_text(limit.hard))});
  if (const std::uint64_t memory = order.container().memory_bytes(); memory != 0)
    words.insert(words.end(), {"--memory", fmt::format("{}b", memory)});
  if (const std::uint32_t cpus = order.container().millicpus(); cpus != 0)
    words.insert(words.end(), {"--cpus", fmt::format("{}.{:03}", cpus / 1000, cpus % 1000)});
  add_devices(words, order, tool, node);
  words.insert(words.end(), mounts.words().begin(), mounts.words().end());
  words.insert(words.end(), {"--entrypoint", run.worker, run.image, run.directory});
  return words;
}

std::string container_name(const std::string& cluster, const std::string& node,
                           const std::string& job, std::uint32_t attempt) {
  std::string name = fmt::format("muster-{}-{}-{}-{}", cluster.substr(0, 8), node, job, attempt);
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '-');
  return name;
}

std::optional<MountedFrom> mounted_from(const rundir::v1::ContainerLaunch& container,
                                        std::string_view path) {
  std::string_view best;
  std::optional<MountedFrom> found;
  each_mount(container, [&](std::string_view source, std::string_view target) {
    // the innermost mount is the visible one
    if (!is_below(path, target) || target.size() < best.size()) return;
    best = target;
    found = {.source = std::string(source), .rest = std::string(path.substr(target.size()))};
  });
  return found;
}

std::vector<std::string> mount_sources(const rundir::v1::ContainerLaunch& container) {
  std::vector<std::string> sources;
  each_mount(container, [&](std::string_view source, std::string_view) {
    sources.emplace_back(source);
  });
  return sources;
}

bool is_nodes_own(const v1::NodeLaunch& order, const std::string& path) {
  // it is in a directory of the job, which is mounted
  if (order.has_code() && is_below(path, order.code().path())) return true;
  struct stat info{};
  const bool covered =
      std::ranges::any_of(order.container().mounts(), [&](const v1::ContainerMount& mount) {
        return !mount.target().empty() && mount.source() != mount.target() &&
               is_below(path, mount.target());
      });
  return !covered &&
         std::ranges::any_of(order.container().mounts(), [&](const v1::ContainerMount& mount) {
           return mount.target().empty() && is_below(path, mount.source()) &&
                  ::stat(mount.source().c_str(), &info) == 0;
         });
}

}  // namespace muster::agent
