#include "common/enrol/socket_place.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <set>
#include <string>
#include <system_error>

namespace muster::enrol {
namespace {

Result<struct stat> status_of_dir(const std::filesystem::path& dir) {
  struct stat status{};
  if (::stat(dir.c_str(), &status) == 0) return status;
  if (errno == ENOENT || errno == ENOTDIR)
    return fail(ErrorCode::NotFound, "there is no directory '" + dir.string() + "'");
  return fail_errno("reading the directory '" + dir.string() + "'", errno);
}

// The directory and those above it, as the path names them, and where its links lead.
std::set<std::filesystem::path> way_to(const std::filesystem::path& dir) {
  std::set<std::filesystem::path> way;
  std::error_code unknown;
  for (std::filesystem::path at : {dir, std::filesystem::canonical(dir, unknown)}) {
    if (at.empty()) continue;
    for (; at != at.root_path(); at = at.parent_path()) way.insert(at);
    way.insert(at);
  }
  return way;
}

constexpr bool others_write(mode_t mode) { return (mode & (S_IWGRP | S_IWOTH)) != 0; }

}  // namespace

Result<void> check_socket_place(const std::filesystem::path& path) {
  if (!path.is_absolute() || !path.has_filename())
    return fail(ErrorCode::InvalidArgument, "its path must be absolute");
  if (path.native().size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::InvalidArgument, "its path has " + std::to_string(path.native().size()) +
                                                " bytes, a unix socket takes 107");
  const std::filesystem::path dir = path.parent_path();
  for (const std::filesystem::path& above : way_to(dir)) {
    const auto mode = status_of_dir(above);
    if (!mode) return fail(Error(mode.error()));
    // Above, others may write where they can replace only what is theirs (/tmp).
    if (others_write(mode->st_mode) && (above == dir || (mode->st_mode & S_ISVTX) == 0))
      return fail(ErrorCode::NotAllowed, "others may write in '" + above.string() +
                                             "', and could put a socket of their own there; chmod "
                                             "755 it, or choose another directory");
  }
  return {};
}

Result<void> check_socket_owner(const std::filesystem::path& path, std::uint32_t controller) {
  for (const std::filesystem::path& dir : way_to(path.parent_path())) {
    const auto status = status_of_dir(dir);
    if (!status) return fail(Error(status.error()));
    if (status->st_uid == 0 || status->st_uid == controller) continue;
    return fail(ErrorCode::NotAllowed,
                "'" + dir.string() + "' belongs to uid " + std::to_string(status->st_uid) +
                    ", and the controller's is " + std::to_string(controller) +
                    ": its owner could put another socket there; use a directory of root or of "
                    "the controller's user");
  }
  return {};
}

}  // namespace muster::enrol
