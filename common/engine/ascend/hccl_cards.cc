#include "common/engine/ascend/hccl_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/engine/ascend/table_plan.h"
#include "common/engine/ranktable/cards.h"

namespace muster::engine {
namespace {

constexpr const char* kDevicesKey = "resources.devices";

}  // namespace

bool is_hccl_group(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  return engine != nullptr && engine->hccl && spec.launch().per() != v1::LAUNCH_PER_ONCE;
}

std::optional<ranktable::Chip> binding_chip(const v1::JobSpec& spec,
                                            std::optional<ranktable::Chip> chip) {
  if (!chip || !is_hccl_group(spec)) return std::nullopt;
  const auto roce = spec.runtime().env().find("HCCL_INTRA_ROCE_ENABLE");
  const bool joined =
      roce != spec.runtime().env().end() && roce->second == "1" && !makes_rank_table(spec);
  return joined && *chip == ranktable::Chip::A910B ? std::nullopt : chip;
}

std::string cards_problem(ranktable::Chip chip, std::span<const std::uint32_t> cards,
                          bool makes_table) {
  std::string wrong = ranktable::cards_problem(chip, cards);
  if (!wrong.empty() && makes_table && chip == ranktable::Chip::A910B)
    wrong += "; and never in a rank table that muster makes: launch.launcher: msrun has none";
  return wrong;
}

void check_cards(const v1::JobSpec& spec, Problems& problems) {
  const v1::ResourceSpec& resources = spec.resources();
  const auto chip = binding_chip(spec, ranktable::chip_of({}, resources.type()));
  if (!chip) return;
  const std::vector<std::uint32_t> ids(resources.device_ids().begin(),
                                       resources.device_ids().end());
  const std::size_t count = ids.empty() ? resources.devices() : ids.size();
  std::string wrong = count == 0 ? std::string() : ranktable::count_problem(*chip, count);
  if (wrong.empty() && !ids.empty()) wrong = cards_problem(*chip, ids, makes_rank_table(spec));
  const std::uint32_t most = ranktable::cards_of(*chip) - 1;
  if (const auto beyond = std::ranges::find_if(ids, [most](std::uint32_t id) { return id > most; });
      wrong.empty() && beyond != ids.end())
    wrong = fmt::format("{}: a {} server has devices 0 to {}", *beyond, ranktable::to_string(*chip),
                        most);
  if (wrong.empty()) return;
  if (*chip == ranktable::Chip::A910) wrong += " (1, 2 or 4 of 0-3 or of 4-7, or all 8)";
  problems.push_back({.key = kDevicesKey, .message = std::move(wrong)});
}

}  // namespace muster::engine
