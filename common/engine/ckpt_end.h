// Is a MindSpore .ckpt file there to its end? Pure: only its last bytes are asked for. The file is
// one protobuf message after the other (mindspore/python/mindspore/train/serialization.py,
// _write_parameter_data; checkpoint.proto), each a Checkpoint with one value {tag, tensor {dims,
// type, content}}, or several slices of a large one. Nothing at the end says that it is the end: a
// writer that was killed between two values leaves a file that reads well and lacks weights.
// MindFormers adds a few scalars last (epoch_num, step_num, global_step, loss_scale), and crc_check
// a trailer: these close a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::engine {

inline constexpr std::size_t kCkptTailBytes = 64 * 1024;

struct CkptEnd {
  bool framed = false;  // the last values end where the file ends
  bool closed = false;  // and they are those that are written last
  // What MindFormers counts by; nothing: not there.
  std::optional<std::int64_t> epoch_num, step_num, global_step;
};
// `tail`: the last min(file_bytes, kCkptTailBytes) bytes.
CkptEnd read_ckpt_end(std::string_view tail, std::uint64_t file_bytes);

}  // namespace muster::engine
