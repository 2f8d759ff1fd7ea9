#include "common/enrol/socket_place.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>

namespace muster::enrol {

Result<void> check_socket_place(const std::filesystem::path& path) {
  if (!path.is_absolute() || !path.has_filename())
    return fail(ErrorCode::InvalidArgument, "its path must be absolute");
  if (path.native().size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::InvalidArgument, "its path has " + std::to_string(path.native().size()) +
                                                " bytes, a unix socket takes 107");
  const std::filesystem::path dir = path.parent_path();
  struct stat status{};
  if (::stat(dir.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return fail(ErrorCode::NotFound, "there is no directory '" + dir.string() + "'");
    return fail_errno("reading the directory '" + dir.string() + "'", errno);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::NotAllowed, "others may write in '" + dir.string() +
                                           "', and could put a socket of their own there; chmod "
                                           "755 it, or choose another directory");
  return {};
}

}  // namespace muster::enrol
