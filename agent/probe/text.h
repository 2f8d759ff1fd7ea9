// What the parsers of device tools share: lines, words, and text that is fit to be shown and sent
// on. Pure; linear in the input; any bytes.
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

// Takes the next line off `rest`, without blanks at its ends. False: there is none.
bool next_line(std::string_view& rest, std::string_view& line);

// By blanks and tabs; `most` at the most.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most = 32);
// By one character, each part without blanks at its ends; `most` at the most.
std::vector<std::string_view> split(std::string_view text, char by, std::size_t most = 32);

// Printable ASCII of it, everything else as '?', at most `most` bytes: a tool's words go into
// messages that must be UTF-8.
std::string clean(std::string_view text, std::size_t most = 160);

// "npu-smi info gave no cards: it printed 'dcmi model initialized failed ...'": the last part, for
// output that is no answer.
std::string printed(std::string_view output);

// The whole text is digits.
std::optional<std::uint64_t> parse_u64(std::string_view text);

// "0000:C1:00.0" or "00000000:0F:00.0" -> "0000:c1:00.0", as folders of /sys/bus/pci/devices are
// named. Nothing: no such address.
std::optional<std::string> pci_address(std::string_view text);

}  // namespace muster::agent::probe
