// How much this user may still write on a file system: bytes, and inodes, of which each new file
// takes one. A file system that has no inodes left is full, whatever `df` says of its bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "common/base/error.h"

namespace muster::io {

// Of a file system that counts no blocks (some of FUSE), or no inodes (btrfs): what is left there,
// the first write tells.
inline constexpr std::uint64_t kUncounted = std::numeric_limits<std::uint64_t>::max() / 2;

struct Room {
  std::uint64_t bytes = kUncounted, inodes = kUncounted;
};
// Of the file system that holds `path`. NotFound: there is no such path.
Result<Room> room_at(const std::filesystem::path& path);

// What to say behind "No space left on device", of the file system that holds `path` or the nearest
// directory above it that is there:
// "; its file system has room, but no inodes left (df -i): remove files that nobody needs". Empty:
// it is not so.
std::string inodes_text(std::filesystem::path path);

}  // namespace muster::io
