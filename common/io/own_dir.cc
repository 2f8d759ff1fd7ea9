#include "common/io/own_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace muster::io {

Result<void> check_own_dir(const std::filesystem::path& dir) {
  const std::string doing = "opening state directory '" + dir.string() + "'";
  struct stat info{};
  if (::stat(dir.c_str(), &info) != 0) return fail_errno(doing, errno);
  if (info.st_uid == ::geteuid()) return {};
  return fail(ErrorCode::NotAllowed, doing + ": it belongs to user " + std::to_string(info.st_uid) +
                                         ", this process runs as user " +
                                         std::to_string(::geteuid()) +
                                         "; start it as that user, or `chown -R` the directory");
}

}  // namespace muster::io
