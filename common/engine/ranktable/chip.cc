#include "common/engine/ranktable/chip.h"

namespace muster::ranktable {
namespace {

// A name with a digit after "910B" is the later chip; "910B" itself is one of the first chips.
std::optional<Chip> chip_of_model(std::string_view model) {
  if (model.starts_with("Ascend")) model.remove_prefix(6);
  if (model.starts_with("910_93")) return Chip::A910_93;
  if (model.starts_with("910B") && model.size() > 4 && model[4] >= '1' && model[4] <= '9')
    return Chip::A910B;
  if (model == "910A" || model == "910B" || model == "910ProA" || model == "910ProB" ||
      model == "910PremiumA")
    return Chip::A910;
  return std::nullopt;
}

}  // namespace

std::optional<Chip> parse_chip(std::string_view text) {
  for (const Chip chip : {Chip::A910, Chip::A910B, Chip::A910_93}) {
    if (text == to_string(chip)) return chip;
  }
  return std::nullopt;
}

std::string_view to_string(Chip chip) {
  switch (chip) {
    case Chip::A910: return "910";
    case Chip::A910B: return "910b";
    case Chip::A910_93: return "910_93";
  }
  return "";
}

std::optional<Chip> chip_of(std::string_view model, std::string_view type) {
  if (const auto chip = chip_of_model(model)) return chip;
  constexpr std::string_view kKind = "ascend";
  return type.starts_with(kKind) ? parse_chip(type.substr(kKind.size())) : std::nullopt;
}

}  // namespace muster::ranktable
