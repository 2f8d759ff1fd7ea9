#include "controller/core/placement/card_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/engine/ascend/hccl_cards.h"
#include "common/engine/ascend/table_plan.h"
#include "common/engine/ranktable/cards.h"

namespace muster::core {

Ask ask_of(const v1::JobSpec& spec) {
  const v1::ResourceSpec& resources = spec.resources();
  Ask ask{.count = std::max<std::size_t>(1, resources.devices()),
          .ids = {resources.device_ids().begin(), resources.device_ids().end()}};
  if (!ask.ids.empty()) ask.count = ask.ids.size();
  return ask;
}

NodeCards::NodeCards(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type)
    : makes_table_(engine::makes_rank_table(spec)),
      upwards_(engine::is_ascend(type) && !makes_table_) {
  bool alike = true, first = true;
  for (const v1::Device& device : node.inventory.devices()) {
    if (device.type() != type) continue;
    if (makes_table_ && spec.resources().nodes() > 1 && !device.addresses().empty())
      addressed_.push_back(device.id());
    const auto chip = ranktable::chip_of(device.model(), device.type());
    alike = alike && (first || chip == chip_);
    first = false;
    chip_ = chip;
    if (chip)
      known_.emplace_back(device.id(),
                          device.has_physical_id() ? device.physical_id() : device.id());
  }
  std::ranges::sort(addressed_);
  std::ranges::sort(known_);
  if (!alike) chip_.reset();
  binding_ = engine::binding_chip(spec, chip_);
}

std::vector<std::uint32_t> NodeCards::physical(const std::vector<std::uint32_t>& devices) const {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(devices.size());
  for (const std::uint32_t device : devices) {
    const auto found =
        std::ranges::lower_bound(known_, device, {}, [](const auto& entry) { return entry.first; });
    numbers.push_back(found != known_.end() && found->first == device ? found->second : device);
  }
  return numbers;
}

std::vector<std::uint32_t> NodeCards::choose(const Ask& ask,
                                             const std::vector<std::uint32_t>& usable) const {
  if (usable.size() < ask.count) return {};
  if (!ask.ids.empty()) {
    const bool there = std::ranges::all_of(
        ask.ids, [&](std::uint32_t id) { return std::ranges::binary_search(usable, id); });
    if (!there || (binding_ && !ranktable::cards_problem(*binding_, physical(ask.ids)).empty()))
      return {};
    std::vector<std::uint32_t> listed = ask.ids;
    if (upwards_) std::ranges::sort(listed);
    return listed;
  }
  std::vector<std::uint32_t> first;
  std::ranges::set_intersection(usable, addressed_, std::back_inserter(first));
  std::vector<std::uint32_t> chosen = choose_any(ask.count, first);
  return chosen.empty() ? choose_any(ask.count, usable) : chosen;
}

std::vector<std::uint32_t> NodeCards::choose_any(std::size_t count,
                                                 const std::vector<std::uint32_t>& usable) const {
  std::vector<std::uint32_t> chosen;
  if (usable.size() < count) return chosen;
  if (chip_) {
    // Several devices may be one card, such as the parts of a divided A3. Each device is taken
    // once, whatever its number.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> by_number;
    const std::vector<std::uint32_t> numbers = physical(usable);
    for (std::size_t at = 0; at < usable.size(); ++at)
      by_number.emplace_back(numbers[at], usable[at]);
    std::ranges::sort(by_number);
    for (const std::uint32_t card : ranktable::choose_cards(*chip_, numbers, count)) {
      const auto first = std::ranges::lower_bound(by_number, std::pair(card, std::uint32_t{0}));
      chosen.push_back(first->second);
      by_number.erase(first);
    }
    std::ranges::sort(chosen);
  }
  if (chosen.empty() && !binding_)
    chosen.assign(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(count));
  return chosen;
}

std::string NodeCards::tally(const std::vector<std::uint32_t>& devices) const {
  return binding_ ? ranktable::tally(*binding_, physical(devices)) : std::to_string(devices.size());
}

std::string NodeCards::refusal(const Ask& ask, const std::vector<std::uint32_t>& usable) const {
  if (!binding_) return {};
  if (std::string wrong = ranktable::count_problem(*binding_, ask.count); !wrong.empty())
    return wrong;
  return ask.ids.empty()
             ? std::string()
             : engine::cards_problem(*binding_,
                                     physical(ask.ids.size() <= usable.size() ? ask.ids : usable),
                                     makes_table_);
}

std::string NodeCards::together(const Ask& ask) const {
  return binding_ && ask.ids.empty() ? ranktable::together(*binding_, ask.count) : std::string();
}

}  // namespace muster::core
