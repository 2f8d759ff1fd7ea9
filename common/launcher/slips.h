// Slips of the pen in a launch script that no shell complains about: they change what the program
// is called with, and it fails minutes later, or trains with other numbers. Pure; linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

// Which flags are known: torchrun's and msrun's, or those of Megatron-LM, MindFormers and their kin
// as well. Of another program `--save` may be a switch.
enum class Flags : std::uint8_t { OfLaunchers, OfTraining };

struct Slip {
  std::size_t line = 1;  // from 1
  std::string text;      // a sentence
};
// At most a few, in order: a '\' with blanks behind it, which joins no lines; a '\' alone behind a
// line that has none; a flag that is known to take a value with another flag, or nothing, behind
// it. Comments are passed over.
std::vector<Slip> slips_of(std::string_view script, Flags flags);

// A flag that is nothing without a value.
bool wants_value(std::string_view flag, Flags flags);

}  // namespace muster::launcher
