#include "common/engine/files/safetensors_end.h"

#include <algorithm>

#include "common/engine/files/line_fields.h"

namespace muster::engine {
namespace {

// A reader of the header's JSON, which has two levels: {"name": {"dtype": "F32", "shape": [2, 3],
// "data_offsets": [0, 24]}, ..., "__metadata__": {"format": "ms"}}. Any other shape is refused. No
// function here is recursive.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool take(char c) {
    blanks();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Returns the string without its quotes; escapes are not decoded.
  std::optional<std::string_view> string() {
    if (!take('"')) return std::nullopt;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '"') {
        const std::string_view found = text_.substr(0, i);
        text_.remove_prefix(i + 1);
        return found;
      }
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> number() {
    blanks();
    const auto found = take_number(text_);
    return found ? std::optional(static_cast<std::uint64_t>(*found)) : std::nullopt;
  }
  // Skips a string, a number or an array of numbers.
  bool skip_value() {
    blanks();
    if (text_.empty()) return false;
    if (text_[0] == '"') return string().has_value();
    if (text_[0] != '[') return number().has_value();
    take('[');
    if (take(']')) return true;
    do {
      if (!number()) return false;
    } while (take(','));
    return take(']');
  }
  [[nodiscard]] bool at_end() {
    blanks();
    return text_.empty();
  }

 private:
  void blanks() { skip(text_, " \t\r\n"); }
  std::string_view text_;
};

struct Tensor {
  std::string_view dtype;
  std::uint64_t begin = 0, end = 0;
  bool placed = false;
};

std::optional<Tensor> read_tensor(Reader& reader) {
  Tensor tensor;
  if (!reader.take('{')) return std::nullopt;
  do {
    const auto key = reader.string();
    if (!key || !reader.take(':')) return std::nullopt;
    if (*key == "data_offsets") {
      if (!reader.take('[')) return std::nullopt;
      const auto begin = reader.number();
      if (!begin || !reader.take(',')) return std::nullopt;
      const auto end = reader.number();
      if (!end || *end < *begin || !reader.take(']')) return std::nullopt;
      tensor.begin = *begin;
      tensor.end = *end;
      tensor.placed = true;
    } else if (*key == "dtype") {
      const auto dtype = reader.string();
      if (!dtype) return std::nullopt;
      tensor.dtype = *dtype;
    } else if (!reader.skip_value()) {
      return std::nullopt;
    }
  } while (reader.take(','));
  if (!reader.take('}') || !tensor.placed) return std::nullopt;
  return tensor;
}

bool skip_metadata(Reader& reader) {
  if (!reader.take('{')) return false;
  if (reader.take('}')) return true;
  do {
    if (!reader.string() || !reader.take(':') || !reader.skip_value()) return false;
  } while (reader.take(','));
  return reader.take('}');
}

}  // namespace

std::optional<std::uint64_t> safetensors_header_bytes(std::string_view first_eight,
                                                      std::uint64_t file_bytes) {
  if (first_eight.size() < 8 || file_bytes < 8) return std::nullopt;
  std::uint64_t bytes = 0;
  for (std::size_t i = 8; i-- > 0;) bytes = bytes << 8 | static_cast<unsigned char>(first_eight[i]);
  if (bytes < 2 || bytes > std::min(kSafetensorsHeaderMost, file_bytes - 8)) return std::nullopt;
  return bytes;
}

SafetensorsHeader read_safetensors_header(std::string_view json, std::uint64_t file_bytes) {
  SafetensorsHeader header;
  const std::uint64_t data_at = 8 + json.size();
  if (file_bytes < data_at) return header;
  Reader reader(json);
  if (!reader.take('{')) return header;
  std::uint64_t ends = 0, sum = 0;
  bool any = false;
  do {
    const auto name = reader.string();
    if (!name || !reader.take(':')) return {};
    if (*name == "__metadata__") {
      if (!skip_metadata(reader)) return {};
      continue;
    }
    const auto tensor = read_tensor(reader);
    if (!tensor || __builtin_add_overflow(sum, tensor->end - tensor->begin, &sum)) return {};
    ends = std::max(ends, tensor->end);
    any = true;
    const auto note = [&](std::string_view wanted, std::optional<SafetensorsScalar>& to) {
      const std::uint64_t size = tensor->end - tensor->begin;
      if (*name == wanted && (size == 4 || size == 8)) {
        to = SafetensorsScalar{.at = data_at + tensor->begin,
                               .bytes = static_cast<std::size_t>(size),
                               .is_integer = tensor->dtype.starts_with('I')};
      }
    };
    note("epoch_num", header.epoch_num);
    note("step_num", header.step_num);
    note("global_step", header.global_step);
    note("loss_scale", header.loss_scale);
  } while (reader.take(','));
  // The format's rule: tensors are adjacent, without holes.
  header.whole =
      reader.take('}') && reader.at_end() && any && sum == ends && ends == file_bytes - data_at;
  return header;
}

}  // namespace muster::engine
