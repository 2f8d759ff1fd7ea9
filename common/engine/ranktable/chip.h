// The chips whose rules rank tables follow, and the names by which their devices are recognized.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::ranktable {

// "910", "910b", "910_93": Atlas training, A2, A3
enum class Chip : std::uint8_t { A910, A910B, A910_93 };
std::optional<Chip> parse_chip(std::string_view text);
std::string_view to_string(Chip chip);

// The chip of a device, from npu-smi's name ("910B3", "Ascend910B3"; may be empty), otherwise from
// the type that its agent reports ("ascend910b"). Nothing: none of these chips, or a newer one.
std::optional<Chip> chip_of(std::string_view model, std::string_view type);

}  // namespace muster::ranktable
