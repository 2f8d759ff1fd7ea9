#include "client/commands/local/local_socket.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "client/commands/call/local_paths.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"
#include "common/rpc/endpoint_file.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

bool fits(const fs::path& socket) {
  return socket.native().size() < sizeof(sockaddr_un::sun_path) - 1;
}

// One name for each cluster of this user.
fs::path short_socket(const fs::path& in, const fs::path& dir) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(dir, ignored);
  constexpr std::size_t kDigits = 16;
  return in / fmt::format("muster-{}.sock",
                          sha256_hex((ignored ? dir : whole).native()).substr(0, kDigits));
}

fs::path short_directory() {
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/')
    return runtime;
  return fmt::format("/tmp/muster-{}", ::geteuid());
}

}  // namespace

Result<fs::path> place_local_socket(const fs::path& dir) {
  if (fs::path own = local_socket(dir); fits(own)) return own;
  fs::path socket = short_socket(short_directory(), dir);
  const fs::path parent = socket.parent_path();
  const std::string doing =
      fmt::format("choosing a socket for '{}', whose path is too long for one, in '{}'",
                  dir.string(), parent.string());
  if (!fits(socket))
    return fail(ErrorCode::InvalidArgument,
                doing + ": that path is too long, too; choose a shorter --state-dir");
  constexpr const char* kHelp =
      "; set XDG_RUNTIME_DIR to a directory of this user alone, or choose a shorter --state-dir";
  if (auto made = io::make_dirs(parent, 0700); !made)
    return fail(made.error().code, doing + ": " + made.error().message + kHelp);
  // /tmp is everybody's: somebody else may have made the directory first.
  struct stat info{};
  if (::lstat(parent.c_str(), &info) != 0) return fail_errno(doing, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return fail(ErrorCode::NotAllowed,
                doing +
                    ": it is not a directory of this user alone (mode 0700); set XDG_RUNTIME_DIR "
                    "to one that is, or choose a shorter --state-dir");
  return socket;
}

void remove_local_socket(const fs::path& dir) {
  const auto endpoint = rpc::read_endpoint_file(local_endpoint(dir));
  if (!endpoint || !rpc::is_unix(endpoint->address)) return;
  const fs::path socket = endpoint->address.substr(endpoint->address.find(':') + 1);
  const bool own = socket == local_socket(dir);
  // The file may name any other path: somebody else may have made the directory.
  if (!own && socket.filename() != short_socket("", dir)) return;
  std::error_code ignored;
  if (fs::is_socket(fs::symlink_status(socket, ignored))) fs::remove(socket, ignored);
  if (!own) fs::remove(socket.string() + ".lock", ignored);
}

}  // namespace muster::client
