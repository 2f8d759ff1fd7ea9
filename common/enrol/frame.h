// Frames of the enrolment port: 4 bytes with the length of the message, big-endian, and the message
// (proto/muster/v1/enrolment.proto). Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::enrol {

inline constexpr std::size_t kFrameBytesMost = 16 << 10;  // of the message
inline constexpr std::size_t kLengthBytes = 4;

// The message has at most kFrameBytesMost bytes.
[[nodiscard]] std::string in_frame(std::string_view message);

using LengthBytes = std::array<unsigned char, kLengthBytes>;
// Nothing: no frame is so long, or the length is 0.
[[nodiscard]] std::optional<std::size_t> length_in(const LengthBytes& bytes);

}  // namespace muster::enrol
