// Checks from the header of a safetensors file whether the file is complete. Pure.
//
// The file has a length of 8 little-endian bytes, then as many bytes of JSON, then the tensors. The
// JSON gives the position of each tensor, so the sizes must add up exactly to the file's size.
// Source: huggingface/safetensors README.md, "Format"; MindSpore writes the files with that
// library.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::engine {

inline constexpr std::uint64_t kSafetensorsHeaderMost = 100'000'000;  // the format's own bound

// Size of the JSON after the first eight bytes. Nothing: these are not the first eight bytes of a
// whole file of that size.
std::optional<std::uint64_t> safetensors_header_bytes(std::string_view first_eight,
                                                      std::uint64_t file_bytes);

struct SafetensorsScalar {
  std::uint64_t at = 0;  // offset in the file
  std::size_t bytes = 0;
  bool is_integer = false;  // little-endian, signed; else a float of 4 or 8 bytes
};
struct SafetensorsHeader {
  bool whole = false;  // the tensors end where the file ends
  // The values that MindFormers adds to the weights for a resume; nothing: not in the file.
  std::optional<SafetensorsScalar> epoch_num, step_num, global_step, loss_scale;
};
// `json`: the whole header. A header that cannot be read gives whole = false.
SafetensorsHeader read_safetensors_header(std::string_view json, std::uint64_t file_bytes);

}  // namespace muster::engine
