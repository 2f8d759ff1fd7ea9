#include "controller/core/placement/table_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/words.h"

namespace muster::core {
namespace {

constexpr std::size_t kServersNamed = 6;

// Equal for two notations of one address. A text that is no address is its own key.
std::string address_key(const std::string& text) {
  const auto address = ranktable::parse_address(text);
  if (!address) return text;
  return std::string(address->v6 ? "6" : "4") +
         std::string(reinterpret_cast<const char*>(address->bytes.data()), address->bytes.size()) +
         address->scope;
}

bool is_own_hosts(const std::string& text) {
  const auto address = ranktable::parse_address(text);
  return address && ranktable::is_loopback(*address);
}

// Nodes by address: the addresses of their training traffic, and all addresses that others can
// reach.
struct AddressBook {
  std::unordered_map<std::string, std::vector<const NodeRecord*>> training, any;

  AddressBook(const Ledger& ledger, const v1::JobSpec& spec) {
    for (const auto& [name, node] : ledger.nodes) {
      std::set<std::string> all;
      for (const v1::NetworkInterface& interface : node.inventory.interfaces()) {
        for (const std::string& address : interface.addresses()) {
          if (!is_own_hosts(address)) all.insert(address_key(address));
        }
      }
      for (const std::string& key : all) any[key].push_back(&node);
      std::set<std::string> own = {address_key(training_address(node, spec)),
                                   address_key(node.inventory.address())};
      for (const std::string& key : own) {
        if (!key.empty()) training[key].push_back(&node);
      }
    }
  }
};

std::string and_more(std::size_t all) {
  return all > kServersNamed ? fmt::format(" and {} more", all - kServersNamed) : std::string();
}

std::string there(const Ledger& ledger) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [name, node] : ledger.nodes) {
    if (named++ == kServersNamed) break;
    text +=
        fmt::format("{}'{}'{}", text.empty() ? "" : ", ", name.str(),
                    node.inventory.address().empty() ? "" : " (" + node.inventory.address() + ")");
  }
  return text + and_more(ledger.nodes.size());
}

std::string_view table_name(const v1::JobSpec& spec) {
  return spec.resources().rank_table().name();
}

std::string listed(const std::vector<std::string>& servers) {
  std::string text;
  for (std::size_t i = 0; i < std::min(servers.size(), kServersNamed); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", ranktable::shown(servers[i]));
  return text + and_more(servers.size());
}

std::uint32_t physical_of(const v1::Device& device) {
  return device.has_physical_id() ? device.physical_id() : device.id();
}

// A list "a,b" contains both addresses.
bool lists_address(std::string_view list, const v1::Device& device) {
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::string key = address_key(std::string(list.substr(0, comma)));
    if (std::ranges::any_of(device.addresses(), [&](const std::string& address) {
          return address_key(address) == key;
        }))
      return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::string contradiction(const ranktable::Device& in_table, const v1::Device& found) {
  if (!in_table.device_ip.empty() && !found.addresses().empty() &&
      !lists_address(in_table.device_ip, found))
    return fmt::format("says that its card {} has the address {}, and the table has {}",
                       in_table.device_id, ranktable::shown(found.addresses(0)),
                       ranktable::shown(in_table.device_ip));
  if (!in_table.super_device_id.empty() && !found.super_device_id().empty() &&
      ranktable::parse_number(in_table.super_device_id) !=
          ranktable::parse_number(found.super_device_id()))
    return fmt::format("says that its card {} has the super_device_id {}, and the table has {}",
                       in_table.device_id, ranktable::shown(found.super_device_id()),
                       ranktable::shown(in_table.super_device_id));
  return {};
}

}  // namespace

std::shared_ptr<const OwnTable> read_own_table(const v1::JobSpec& spec) {
  if (!spec.resources().has_rank_table()) return nullptr;
  auto table = ranktable::load_table(spec.resources().rank_table().content());
  if (!table) return nullptr;
  auto order = ranktable::by_rank(*table);
  if (!order) return nullptr;
  return std::make_shared<OwnTable>(
      OwnTable{.table = *std::move(table), .order = *std::move(order)});
}

TableNodes find_nodes(const OwnTable& own, const Ledger& ledger, const v1::JobSpec& spec) {
  const AddressBook book(ledger, spec);
  TableNodes found;
  std::vector<std::string> missing;
  std::map<const NodeRecord*, std::string> servers;
  for (const ranktable::ServerRanks& one : own.order) {
    const std::string& id = own.table.servers[one.server].server_id;
    const NodeRecord* node = nullptr;
    if (const auto named = ledger.nodes.find(NodeName(id)); named != ledger.nodes.end())
      node = &named->second;
    for (const auto* addresses : {&book.training, &book.any}) {
      const auto at = node == nullptr ? addresses->find(address_key(id)) : addresses->end();
      if (at == addresses->end()) continue;
      if (at->second.size() > 1) {
        found.why = fmt::format(
            "resources.rank_table '{}': server '{}' is the address of nodes '{}' and '{}'; write "
            "the name of one of them as its server_id",
            ranktable::shown(table_name(spec)), ranktable::shown(id), at->second[0]->name.str(),
            at->second[1]->name.str());
        return found;
      }
      node = at->second.front();
    }
    found.nodes.push_back(node);
    if (node == nullptr) {
      missing.push_back(id);
    } else if (const auto [first, added] = servers.try_emplace(node, id); !added) {
      found.why = fmt::format("resources.rank_table '{}': servers '{}' and '{}' are both node '{}'",
                              ranktable::shown(table_name(spec)), ranktable::shown(first->second),
                              ranktable::shown(id), node->name.str());
      return found;
    }
  }
  if (missing.empty()) return found;
  found.why = fmt::format(
      "resources.rank_table '{}': {} {}; there {} {}, and a server_id is a node's name or address",
      ranktable::shown(table_name(spec)), listed(missing),
      missing.size() == 1 ? "is no registered node" : "are no registered nodes",
      ledger.nodes.size() == 1 ? "is" : "are", there(ledger));
  return found;
}

Fit server_fit(const OwnTable& own, std::size_t place, const NodeRecord& node,
               const v1::JobSpec& spec, std::string_view type) {
  if (std::string why = lacks_apart_from_devices(node, spec); !why.empty())
    return {.why = std::move(why)};
  std::map<std::uint32_t, const v1::Device*> cards;  // by physical number
  const std::set<std::uint32_t> ambiguous = ambiguous_ids(node.inventory);
  for (const v1::Device& device : node.inventory.devices()) {
    if (device.type() == type && !ambiguous.contains(device.id()))
      cards.emplace(physical_of(device), &device);
  }
  const ranktable::ServerRanks& ranks = own.order[place];
  const ranktable::Server& server = own.table.servers[ranks.server];
  Fit fit;
  std::vector<std::string> missing;
  for (const std::size_t at : ranks.devices) {
    const ranktable::Device& in_table = server.devices[at];
    const auto card = cards.find(in_table.device_id);
    if (card == cards.end()) {
      missing.push_back(std::to_string(in_table.device_id));
    } else if (std::string why = contradiction(in_table, *card->second); !why.empty()) {
      return {.why = std::move(why)};
    } else {
      fit.devices.push_back(card->second->id());
    }
  }
  if (missing.empty()) return fit;
  missing.resize(std::min(missing.size(), kServersNamed));
  return {.why = fmt::format("has no {} with the number {} (device_id)", type,
                             fmt::join(missing, ", "))};
}

std::string table_refusal(const OwnTable& own, std::span<const NodeRecord* const> nodes,
                          std::string_view type) {
  std::optional<ranktable::Chip> chip;
  for (const NodeRecord* node : nodes) {
    if (node == nullptr) return {};
    for (const v1::Device& device : node->inventory.devices()) {
      if (device.type() != type) continue;
      const auto one = ranktable::chip_of(device.model(), device.type());
      if (!one || (chip && *chip != *one)) return {};
      chip = one;
    }
  }
  if (!chip) return {};
  const ranktable::Findings found = ranktable::check(own.table, chip);
  if (found.problems.empty()) return {};
  const ranktable::Finding& first = found.problems.front();
  return fmt::format("HCCL would refuse the table on {}: {}{}{}", ranktable::to_string(*chip),
                     first.where, first.where.empty() ? "" : ": ", first.message);
}

}  // namespace muster::core
