#include "common/enrol/frame.h"

#include "common/base/assert.h"

namespace muster::enrol {

std::string in_frame(std::string_view message) {
  MUSTER_ASSERT(!message.empty() && message.size() <= kFrameBytesMost,
                "a message that no frame holds was to be sent");
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>((message.size() >> shift) & 0xff);
  frame += message;
  return frame;
}

std::optional<std::size_t> length_in(const LengthBytes& bytes) {
  std::size_t length = 0;
  for (const unsigned char byte : bytes) length = length << 8 | byte;
  if (length == 0 || length > kFrameBytesMost) return std::nullopt;
  return length;
}

}  // namespace muster::enrol
