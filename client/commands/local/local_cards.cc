#include "client/commands/local/local_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/io/file.h"

namespace muster::client {
namespace {

struct CardKind {
  std::string_view type;
  std::string_view model;
  std::uint32_t memory_mib;
};
constexpr std::array kKinds = {
    CardKind{"ascend910", "910A", 32'768}, CardKind{"ascend910b", "910B3", 65'536},
    CardKind{"ascend910_93", "Ascend910", 65'536}, CardKind{"nvidia", "H200", 143'771}};

constexpr std::string_view kTypeKey = "type=";

}  // namespace

bool is_card_type(std::string_view type) {
  return std::ranges::find(kKinds, type, &CardKind::type) != kKinds.end();
}

std::string stand_in_cards(std::string_view type, std::uint32_t node, std::uint32_t cards) {
  const auto kind = std::ranges::find(kKinds, type, &CardKind::type);
  std::string text = "# stand-ins, by 'muster local up --device-type': no such card is here\n";
  for (std::uint32_t card = 0; kind != kKinds.end() && card < cards; ++card) {
    text += fmt::format("id={} type={} name={} memory_mib={}", card, kind->type, kind->model,
                        kind->memory_mib);
    if (kind->type != "nvidia")
      text += fmt::format(" address=198.{}.{}.{}", 18 + (node / 250) % 2, node % 250, card + 10);
    if (kind->type == "ascend910_93")
      text += fmt::format(" super_pod=0 super_device={} server={}", node * kCardsMost + card, node);
    text += '\n';
  }
  return text;
}

CardList read_cards(const std::filesystem::path& list) {
  CardList found;
  const auto text = io::read_file(list, 64 << 10);
  if (!text) return found;
  for (std::size_t at = text->find(kTypeKey); at != std::string::npos;
       at = text->find(kTypeKey, at)) {
    at += kTypeKey.size();
    found.type = text->substr(at, text->find_first_of(" \n", at) - at);
    ++found.cards;
  }
  return is_card_type(found.type) ? found : CardList{};
}

}  // namespace muster::client
