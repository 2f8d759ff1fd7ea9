// Checks from the last bytes of a zip archive whether the file is complete; torch.save writes zip
// archives since PyTorch 1.6. Pure.
//
// The central directory is written last, so a torn file has none. A directory with wrong offsets
// shows a mixture of two writes.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::engine {

// longest comment, the end record, and the zip64 records before it
inline constexpr std::size_t kZipTailBytes = 64 * 1024 + 22 + 76;

// `tail`: the last min(file_bytes, kZipTailBytes) bytes.
bool zip_is_whole(std::string_view tail, std::uint64_t file_bytes);

}  // namespace muster::engine
