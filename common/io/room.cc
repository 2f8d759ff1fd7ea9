#include "common/io/room.h"

#include <sys/statvfs.h>

#include <cerrno>

namespace muster::io {

Result<Room> room_at(const std::filesystem::path& path) {
  struct statvfs about{};
  int done = 0;
  do {
    done = ::statvfs(path.c_str(), &about);
  } while (done != 0 && errno == EINTR);
  if (done != 0) {
    const int error = errno;
    auto failed = fail_errno("reading how much room is left at '" + path.string() + "'", error);
    if (error == ENOENT) failed.error().code = ErrorCode::NotFound;
    return failed;
  }
  Room room;
  if (about.f_blocks != 0) room.bytes = static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize;
  if (about.f_files != 0) room.inodes = about.f_favail;
  return room;
}

std::string inodes_text(std::filesystem::path path) {
  auto room = room_at(path);
  while (!room && room.error().code == ErrorCode::NotFound && path.has_relative_path()) {
    path = path.parent_path();
    room = room_at(path);
  }
  return room && room->inodes == 0 ? "; its file system has room, but no inodes left (df -i): "
                                     "remove files that nobody needs"
                                   : "";
}

}  // namespace muster::io
