// Is a zip archive (what torch.save writes since PyTorch 1.6) there to its end? Pure: only its last
// bytes are asked for. The central directory is written last, so a torn file has none; one that
// lies about offsets is a mixture of two writes.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::engine {

// longest comment, the end record, and the zip64 records before it
inline constexpr std::size_t kZipTailBytes = 64 * 1024 + 22 + 76;

// `tail`: the last min(file_bytes, kZipTailBytes) bytes.
bool zip_is_whole(std::string_view tail, std::uint64_t file_bytes);

}  // namespace muster::engine
