// Checks from the last bytes of a MindSpore .ckpt file whether the file is complete. Pure.
//
// The file is a sequence of protobuf messages (mindspore/python/mindspore/train/serialization.py,
// _write_parameter_data; checkpoint.proto). Each message is a Checkpoint with one value {tag,
// tensor {dims, type, content}}. A large value is cut into several slices.
//
// Nothing at the end of the file marks the end. A writer that is killed between two values leaves a
// file that is readable but lacks weights. MindFormers writes a few scalars last (epoch_num,
// step_num, global_step, loss_scale), and crc_check adds a trailer. These mark the end of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::engine {

inline constexpr std::size_t kCkptTailBytes = 64 * 1024;

struct CkptEnd {
  bool framed = false;  // the last values end where the file ends
  bool closed = false;  // and they are those that a writer writes last
  // The counters of MindFormers; nothing: not in the file.
  std::optional<std::int64_t> epoch_num, step_num, global_step;
};
// `tail`: the last min(file_bytes, kCkptTailBytes) bytes.
CkptEnd read_ckpt_end(std::string_view tail, std::uint64_t file_bytes);

}  // namespace muster::engine
