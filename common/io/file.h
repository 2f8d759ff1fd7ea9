// Functions for whole files: they read with a bound, and replace or create a file in one step. No
// reader can see half of a file, except with overwrite_file. Any thread; blocking.
//
// A path that does not exist is ErrorCode::NotFound. A full disk or quota is
// ErrorCode::ResourceExhausted. Everything else is ErrorCode::Io. The text has the path.
//
// Durable::Yes syncs the file and its directory. Use it for what must survive a power cut
// (identity, secrets). Durable::No is for the launch path, where records carry the boot id instead:
// 64 synced directories would cost more than the launch.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"

namespace muster::io {

enum class Durable : std::uint8_t { No, Yes };
// Whether a link at the path itself is followed. Refuse is for a directory that others write in.
// Own is Refuse for what is believed: the file must belong to this process's user, and nobody else
// may write it. Own for writing: it has no other name (hard link), either.
enum class Links : std::uint8_t { Follow, Refuse, Own };

// Where a file is: at a path, or under a name in an open directory (common/io/beneath.h). A path
// converts to it.
struct At {
  template <class Path>
    requires std::convertible_to<Path, std::filesystem::path>
  At(Path&& where) : path(std::forward<Path>(where)), shown(path) {}
  At(int directory, std::filesystem::path name, std::filesystem::path text)
      : dir(directory), path(std::move(name)), shown(std::move(text)) {}

  int dir = AT_FDCWD;  // must stay open as long as this is used
  std::filesystem::path path;
  std::filesystem::path shown;  // for texts
};

// Empty if the file meets Links::Own; else what is wrong: "it belongs to user 1000, and this
// process is of user 0".
std::string not_own(const struct stat& status);

// More than `most` bytes is ErrorCode::ResourceExhausted; then the function returns no part of the
// file.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t most);
// For a directory that others write in. A pipe or a device in place of the file is an error at
// once, because reading it might never end. With Links::Refuse that is ErrorCode::DataLoss, and so
// is a link. With Links::Own so is a file of another user.
Result<std::string> read_regular_file(const At& at, std::size_t most, Links links = Links::Follow);
// Works like read_regular_file, but `check` sees the status of the open file before its bytes are
// read. An error of `check` is the result. For a secret: the file that was checked is the one that
// is read.
using StatusCheck = std::function<Result<void>(const struct stat&)>;
Result<std::string> read_checked_file(const std::filesystem::path& path, std::size_t most,
                                      const StatusCheck& check);

// Writes a temporary file of mode 0600 in the same directory, then renames it. Readers see the old
// bytes or the new ones. The temporary file is a new one, ".NAME.PID.NUMBER", also in a directory
// where others have made files and links with such names. After a crash it stays, and nobody reads
// it.
Result<void> replace_file(const At& at, std::string_view bytes, Durable durable);

// Writes over the bytes of an existing file, within the space that the file already has. It is for
// a full disk. A reader at that moment may see parts of both versions, so readers must read again.
// Only a regular file with one name is written, and no link is followed.
Result<void> overwrite_file(const At& at, std::string_view bytes);

// Works like replace_file, but only if `path` does not exist yet. Returns false if another caller
// was first; then the other caller's file stays. Exactly one of any number of concurrent callers
// gets true. Nobody ever reads a part: it is like O_EXCL with the content already inside.
Result<bool> create_file(const At& at, std::string_view bytes, Durable durable);

// Creates the directory and its missing parents with `mode`, whatever the umask is. Leaves an
// existing directory as it is.
Result<void> make_dirs(const std::filesystem::path& path, unsigned mode);

// Writes all of `bytes`, over short writes and EINTR. Returns 0 or errno; `written` is the number
// of bytes written.
int write_all(int fd, std::string_view bytes, std::size_t& written);

}  // namespace muster::io
