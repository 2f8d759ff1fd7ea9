#include "agent/launch/job_reach.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

bool is_in(std::string_view path, std::string_view dir) {
  return path.starts_with(dir) && (path.size() == dir.size() || path[dir.size()] == '/');
}

}  // namespace

JobReach reach_of(const v1::NodeLaunch& order, const UserEntry* owner) {
  JobReach reach;
  if (owner != nullptr) reach.user = *owner;
  if (!order.has_container()) return reach;
  reach.container = true;
  std::vector<std::string> all(order.make_dirs().begin(), order.make_dirs().end());
  for (const v1::ContainerMount& mount : order.container().mounts()) all.push_back(mount.source());
  // Containers of earlier attempts wrote there.
  for (const std::string& dir : {order.resume().source(), order.scan_first().dir()})
    if (!dir.empty()) all.push_back(dir);
  for (const v1::Fetch& fetch : order.fetches()) all.push_back(fetch.path());
  reach.mounts = mount_roots(all);
  return reach;
}

std::vector<std::string> mount_roots(const std::vector<std::string>& sources) {
  std::vector<std::string> roots;
  for (const std::string& source : sources) {
    std::error_code unknown;
    std::string root = std::filesystem::weakly_canonical(source, unknown).string();
    if (unknown) continue;  // a path that cannot be looked up holds nothing that is read
    while (root.ends_with('/')) root.pop_back();
    roots.push_back(std::move(root));
  }
  return roots;
}

bool InReach::allows(int fd) const {
  if (!rights_.have()) return false;
  if (!confined()) return true;
  std::array<char, PATH_MAX> name{};
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name.data(), name.size());
  if (length <= 0) return false;
  const std::string_view path(name.data(), static_cast<std::size_t>(length));
  return std::ranges::any_of(reach_.mounts, [&](const auto& dir) { return is_in(path, dir); });
}

bool InReach::exists(const std::string& path) const {
  if (!rights_.have()) return false;
  // stat(2) needs no descriptor, of which there may be none. access(2) ignores the rights here.
  struct stat info{};
  if (!confined()) return ::stat(path.c_str(), &info) == 0;
  const io::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  return fd && allows(fd.get());
}

}  // namespace muster::agent
