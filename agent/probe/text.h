// Helpers of the parsers of device tools: lines, words, and text that may be shown and sent. Pure;
// linear in the input; any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent::probe {

inline constexpr std::size_t kDevicesMax = 256;     // of one node; real ones have 16
inline constexpr std::size_t kOccupantsMax = 4096;  // of one node

// Takes the next line from `rest`, without blanks at its ends. Returns false if there is none.
bool next_line(std::string_view& rest, std::string_view& line);

// Splits at blanks and tabs, into at most `most` parts.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most = 32);
// Splits at one character, into at most `most` parts. Each part is without blanks at its ends.
std::vector<std::string_view> split(std::string_view text, char by, std::size_t most = 32);

// Returns printable ASCII with everything else as '?', at most `most` bytes. The text of a tool
// goes into messages that must be UTF-8.
std::string clean(std::string_view text, std::size_t most = 160);

// Describes output that is no answer. It is the last part of "npu-smi info gave no cards: it
// printed 'dcmi model initialized failed ...'".
std::string printed(std::string_view output);

// The whole text must be digits.
std::optional<std::uint64_t> parse_u64(std::string_view text);

// "0000:C1:00.0" or "00000000:0F:00.0" -> "0000:c1:00.0", the form of the folders in
// /sys/bus/pci/devices. Returns nullopt if it is no such address.
std::optional<std::string> pci_address(std::string_view text);

}  // namespace muster::agent::probe
