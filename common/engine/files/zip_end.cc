#include "common/engine/files/zip_end.h"

#include <algorithm>

namespace muster::engine {
namespace {

constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50,
                        kEntry = 0x02014b50;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56;

std::uint64_t number(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

}  // namespace

bool zip_is_whole(std::string_view tail, std::uint64_t file_bytes) {
  if (tail.size() < kEndBytes || file_bytes < tail.size()) return false;
  // the file grew or shrank while it was read
  if (tail.size() != std::min<std::uint64_t>(file_bytes, kZipTailBytes)) return false;
  // The end record is directly before its comment, which extends to the end of the file.
  for (std::size_t at = tail.size() - kEndBytes;; --at) {
    if (number(tail, at, 4) == kEnd && at + kEndBytes + number(tail, at + 20, 2) == tail.size()) {
      std::uint64_t entries = number(tail, at + 10, 2), directory_bytes = number(tail, at + 12, 4),
                    directory_at = number(tail, at + 16, 4);
      std::size_t records = at;  // position in the tail where the end records start
      if (at >= kLocatorBytes && number(tail, at - kLocatorBytes, 4) == kLocator64) {
        if (at < kLocatorBytes + kEnd64Bytes ||
            number(tail, at - kLocatorBytes - kEnd64Bytes, 4) != kEnd64)
          return false;
        records = at - kLocatorBytes - kEnd64Bytes;
        entries = number(tail, records + 32, 8);
        directory_bytes = number(tail, records + 40, 8);
        directory_at = number(tail, records + 48, 8);
      }
      const std::uint64_t tail_at = file_bytes - tail.size();
      if (directory_bytes > file_bytes || directory_at > file_bytes ||
          directory_at + directory_bytes != tail_at + records)
        return false;
      // an archive without entries is no checkpoint
      if (entries == 0 || directory_bytes < 46) return false;
      return directory_at < tail_at ||
             number(tail, static_cast<std::size_t>(directory_at - tail_at), 4) == kEntry;
    }
    if (at == 0) return false;
  }
}

}  // namespace muster::engine
