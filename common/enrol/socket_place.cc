#include "common/enrol/socket_place.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>

namespace muster::enrol {
namespace {

Result<struct stat> status_of_dir(const std::filesystem::path& dir) {
  struct stat status{};
  if (::stat(dir.c_str(), &status) == 0) return status;
  if (errno == ENOENT || errno == ENOTDIR)
    return fail(ErrorCode::NotFound, "there is no directory '" + dir.string() + "'");
  return fail_errno("reading the directory '" + dir.string() + "'", errno);
}

}  // namespace

Result<void> check_socket_place(const std::filesystem::path& path) {
  if (!path.is_absolute() || !path.has_filename())
    return fail(ErrorCode::InvalidArgument, "its path must be absolute");
  if (path.native().size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::InvalidArgument, "its path has " + std::to_string(path.native().size()) +
                                                " bytes, a unix socket takes 107");
  const std::filesystem::path dir = path.parent_path();
  const auto status = status_of_dir(dir);
  if (!status) return fail(Error(status.error()));
  if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::NotAllowed, "others may write in '" + dir.string() +
                                           "', and could put a socket of their own there; chmod "
                                           "755 it, or choose another directory");
  return {};
}

Result<void> check_socket_owner(const std::filesystem::path& path, std::uint32_t controller) {
  const std::filesystem::path dir = path.parent_path();
  const auto status = status_of_dir(dir);
  if (!status) return fail(Error(status.error()));
  if (status->st_uid == 0 || status->st_uid == controller) return {};
  return fail(ErrorCode::NotAllowed,
              "'" + dir.string() + "' belongs to uid " + std::to_string(status->st_uid) +
                  ", and the controller's is " + std::to_string(controller) +
                  ": its owner could put another socket there; use a directory of root or of the "
                  "controller's user");
}

}  // namespace muster::enrol
