#include "common/engine/files/ckpt_end.h"

#include <algorithm>
#include <vector>

namespace muster::engine {
namespace {

constexpr std::size_t kTagBytesMost = 1024;
constexpr std::string_view kTrailer = "crc_num";
constexpr std::size_t kTrailerBytes = 7 + 10;  // "crc_num", and the sum in ten bytes, big-endian

// Protobuf's wire format, as far as checkpoint.proto uses it: field 1 of Checkpoint, fields 1 and 2
// of Value, fields 1 to 3 of TensorProto.
struct Wire {
  std::string_view text;

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < text.size() && i < 10; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        text.remove_prefix(i + 1);
        return value;
      }
    }
    return std::nullopt;
  }
  // Reads a field with this key and a length.
  std::optional<std::string_view> bytes(char key) {
    if (text.empty() || text[0] != key) return std::nullopt;
    text.remove_prefix(1);
    const auto size = varint();
    if (!size || *size > text.size()) return std::nullopt;
    const std::string_view found = text.substr(0, static_cast<std::size_t>(*size));
    text.remove_prefix(found.size());
    return found;
  }
};

struct Value {
  std::string_view tag, type, content;
  std::size_t bytes = 0;  // of the whole message
};

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::optional<Value> read_value(std::string_view text) {
  Wire file{text};
  const auto message = file.bytes('\x0a');
  if (!message) return std::nullopt;
  Wire wire{*message};
  const auto tag = wire.bytes('\x0a');
  const auto tensor = wire.bytes('\x12');
  if (!tag || !tensor || !wire.text.empty() || tag->empty() || tag->size() > kTagBytesMost ||
      !printable(*tag))
    return std::nullopt;
  Wire parts{*tensor};
  while (!parts.text.empty() && parts.text[0] == '\x08') {
    parts.text.remove_prefix(1);
    if (!parts.varint()) return std::nullopt;
  }
  const auto type = parts.bytes('\x12');
  const auto content = parts.bytes('\x1a');
  if (!type || !content || !parts.text.empty() || type->empty() || type->size() > 32 ||
      !printable(*type))
    return std::nullopt;
  return Value{
      .tag = *tag, .type = *type, .content = *content, .bytes = text.size() - file.text.size()};
}

std::optional<std::int64_t> integer(const Value& value) {
  if (!value.type.starts_with("Int") && !value.type.starts_with("UInt")) return std::nullopt;
  if (value.content.size() != 4 && value.content.size() != 8) return std::nullopt;
  std::uint64_t bits = 0;
  for (std::size_t i = value.content.size(); i-- > 0;)
    bits = bits << 8 | static_cast<unsigned char>(value.content[i]);
  return value.content.size() == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))
                                   : static_cast<std::int64_t>(bits);
}

}  // namespace

CkptEnd read_ckpt_end(std::string_view tail, std::uint64_t file_bytes) {
  CkptEnd end;
  // the file grew or shrank while it was read
  if (tail.size() != std::min<std::uint64_t>(file_bytes, kCkptTailBytes)) return end;
  bool trailer = false;
  if (tail.size() > kTrailerBytes &&
      tail.substr(tail.size() - kTrailerBytes).starts_with(kTrailer)) {
    trailer = true;
    tail.remove_suffix(kTrailerBytes);
  }
  // Searches the first start in the tail from which value follows value up to the end. A position
  // from which this failed is not tried again.
  std::vector<bool> nowhere(tail.size(), false);
  std::vector<std::size_t> way;
  for (std::size_t start = 0; start < tail.size() && !end.framed; ++start) {
    if (tail[start] != '\x0a') continue;
    way.clear();
    std::size_t at = start;
    while (at < tail.size() && !nowhere[at]) {
      const auto value = read_value(tail.substr(at));
      if (!value) break;
      way.push_back(at);
      at += value->bytes;
    }
    end.framed = at == tail.size() && !way.empty();
    if (!end.framed) {
      for (const std::size_t place : way) nowhere[place] = true;
    }
  }
  if (!end.framed) return {};
  bool loss_scale = false;
  for (const std::size_t at : way) {
    const auto value = read_value(tail.substr(at));
    if (!value) return {};
    if (value->tag == "epoch_num") end.epoch_num = integer(*value);
    if (value->tag == "step_num") end.step_num = integer(*value);
    if (value->tag == "global_step") end.global_step = integer(*value);
    loss_scale = loss_scale || value->tag == "loss_scale";
  }
  end.closed = trailer || (loss_scale && end.step_num.has_value());
  return end;
}

}  // namespace muster::engine
