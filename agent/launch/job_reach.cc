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
  while (dir.ends_with('/')) dir.remove_suffix(1);
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
  for (std::string& dir : all) {
    while (dir.ends_with('/')) dir.pop_back();
  }
  reach.mounts = std::move(all);
  return reach;
}

bool InReach::allows(int fd) const {
  if (!confined()) return true;
  std::array<char, PATH_MAX> name{};
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name.data(), name.size());
  if (length <= 0) return false;
  const std::string_view path(name.data(), static_cast<std::size_t>(length));
  if (std::ranges::any_of(reach_.mounts, [&](const auto& dir) { return is_in(path, dir); }))
    return true;
  // The path of a mount may have links of the site.
  return std::ranges::any_of(reach_.mounts, [&](const std::string& dir) {
    std::error_code unknown;
    const std::string real = std::filesystem::canonical(dir, unknown).string();
    return !unknown && is_in(path, real);
  });
}

bool InReach::exists(const std::string& path) const {
  // stat(2) needs no descriptor, of which there may be none. access(2) ignores the rights here.
  struct stat info{};
  if (!confined()) return ::stat(path.c_str(), &info) == 0;
  const io::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  return fd && allows(fd.get());
}

}  // namespace muster::agent
