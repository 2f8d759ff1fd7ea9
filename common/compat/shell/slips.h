// Finds typing mistakes in a launch script that no shell reports. Such a mistake changes the
// program's arguments, so that the program fails minutes later or trains with other numbers. Pure;
// linear time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

// Which flags are known: those of torchrun and msrun, or also those of Megatron-LM, MindFormers and
// related programs. For another program `--save` may be a switch.
enum class Flags : std::uint8_t { OfLaunchers, OfTraining };

struct Slip {
  std::size_t line = 1;  // from 1
  std::string text;      // a sentence
};
// Returns only the first few (at most 8), in the order of lines. Comments are skipped. It finds:
// - a '\' with blanks after it, which joins no lines;
// - a '\' alone on a line, after a line that has none;
// - a flag that is known to take a value, with another flag or nothing after it.
std::vector<Slip> slips_of(std::string_view script, Flags flags);

// Whether the flag needs a value.
bool wants_value(std::string_view flag, Flags flags);

}  // namespace muster::launcher
