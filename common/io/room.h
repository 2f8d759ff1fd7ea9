// Reports how much this user may still write on a file system: bytes and inodes. Stateless
// functions. Any thread; blocking.
//
// Each new file takes one inode. A file system without free inodes is full, whatever `df` reports
// for its bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "common/base/error.h"

namespace muster::io {

// The value for a file system that counts no blocks (some FUSE file systems) or no inodes (btrfs).
// Only the first write shows what is left there.
inline constexpr std::uint64_t kUncounted = std::numeric_limits<std::uint64_t>::max() / 2;

struct Room {
  std::uint64_t bytes = kUncounted, inodes = kUncounted;
};
// Reads the file system of `path`. NotFound: the path does not exist.
Result<Room> room_at(const std::filesystem::path& path);

// Returns a text to append to "No space left on device": "; its file system has room, but no inodes
// left (df -i): remove files that nobody needs". Returns an empty text if inodes are left. It reads
// the file system of `path`, or of the nearest existing directory above it.
std::string inodes_text(std::filesystem::path path);

}  // namespace muster::io
