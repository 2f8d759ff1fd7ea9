// Is a safetensors file there to its end? Pure. The file is an 8-byte little-endian length, that
// many bytes of JSON, then the tensors; the JSON tells where each tensor lies, so the sizes must
// add up to the file's exactly. (huggingface/safetensors README.md, "Format"; MindSpore writes them
// through that library.)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::engine {

inline constexpr std::uint64_t kSafetensorsHeaderMost = 100'000'000;  // the format's own bound

// Bytes of the JSON behind the first eight; nothing: these are not the first eight bytes of a whole
// file of that size.
std::optional<std::uint64_t> safetensors_header_bytes(std::string_view first_eight,
                                                      std::uint64_t file_bytes);

struct SafetensorsScalar {
  std::uint64_t at = 0;  // in the file
  std::size_t bytes = 0;
  bool is_integer = false;  // little-endian, signed; else a float of 4 or 8 bytes
};
struct SafetensorsHeader {
  bool whole = false;  // the tensors end where the file ends
  // What MindFormers adds to the weights for a resume; nothing: not there.
  std::optional<SafetensorsScalar> epoch_num, step_num, global_step, loss_scale;
};
// `json`: all of the header. One that cannot be read is not whole.
SafetensorsHeader read_safetensors_header(std::string_view json, std::uint64_t file_bytes);

}  // namespace muster::engine
