#include "common/io/own_dir.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace muster::io {

Result<void> check_own_dir(const std::filesystem::path& dir) {
  struct stat info{};
  if (::stat(dir.c_str(), &info) != 0)
    return fail_errno(fmt::format("opening state directory '{}'", dir.string()), errno);
  if (info.st_uid == ::geteuid()) return {};
  return fail(ErrorCode::NotAllowed,
              fmt::format("opening state directory '{}': it belongs to user {}, this process runs "
                          "as user {}; give one of its own with --state-dir",
                          dir.string(), info.st_uid, ::geteuid()));
}

}  // namespace muster::io
