#include "common/engine/ranktable/check_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/engine/ranktable/cards.h"
#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

std::string devices(std::size_t count) {
  return fmt::format("{} device{}", count, count == 1 ? "" : "s");
}

struct Place {
  std::size_t server = 0, device = 0;
};

class Checker {
 public:
  Checker(const RankTable& table, const Names& names, Findings& found)
      : table_(table), names_(names), found_(found), ranks_(table.rank_count()) {}

  void common() {
    if (table_.servers.empty())
      found_.problem(std::string(names_.servers), "is empty; a table has at least one server");
    if (ranks_ > kRanksMax)
      found_.problem(std::string(names_.servers),
                     fmt::format("has {} devices; muster reads at most {}", ranks_, kRanksMax));
    if (table_.servers.empty() || ranks_ > kRanksMax) return;
    servers();
    ranks();
    addresses();
    host_addresses();
    if (table_.version == Version::SuperPods) pods();
  }

  void of_910() {
    const std::size_t count = table_.servers.front().devices.size();
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      const Server& server = table_.servers[s];
      device_ids(s, Chip::A910, "a 910 server has devices 0 to 7");
      const std::size_t have = server.devices.size();
      if (have != count)
        found_.problem(
            at_server(s, names_.devices),
            fmt::format("{}, but the first server has {}; on 910 every server has as many",
                        devices(have), count));
      if (have == 0) continue;
      cards(s, Chip::A910);
    }
  }

  void of_910b() {
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      device_ids(s, Chip::A910B, "a 910b server has devices 0 to 15 at most");
      cards(s, Chip::A910B);
    }
  }

  void of_910_93() {
    for (std::size_t s = 0; s < table_.servers.size(); ++s)
      device_ids(s, Chip::A910_93, "servers have devices 0 to 15 at most");
  }

  [[nodiscard]] bool may_be_910() const {
    if (table_.version == Version::SuperPods) return false;
    return std::ranges::all_of(table_.servers, [](const Server& server) {
      return std::ranges::all_of(server.devices,
                                 [](const Device& device) { return device.device_id < 8; });
    });
  }

  // Two ranks on one device need different ports; a 910 accepts one rank on each device.
  void shared_devices(bool refused) {
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      std::unordered_map<std::uint32_t, std::size_t> first;
      for (std::size_t d = 0; d < table_.servers[s].devices.size(); ++d) {
        const std::uint32_t id = table_.servers[s].devices[d].device_id;
        if (id == kUnknown) continue;
        const auto [place, added] = first.try_emplace(id, d);
        if (added) continue;
        if (refused)
          found_.problem(at_device(s, d, "device_id"),
                         fmt::format("device {} is twice on this server, first at {}", id,
                                     at_device(s, place->second)));
        else
          found_.note(at_device(s, d, "device_id"),
                      fmt::format("device {} is twice on this server, first at {}; its ranks need "
                                  "different device_port and host_port",
                                  id, at_device(s, place->second)));
      }
    }
  }

 private:
  [[nodiscard]] std::string at_server(std::size_t server, std::string_view key = {}) const {
    return fmt::format("{}[{}]{}{}", names_.servers, server, key.empty() ? "" : ".", key);
  }
  [[nodiscard]] std::string at_device(std::size_t server, std::size_t device,
                                      std::string_view key = {}) const {
    return fmt::format("{}[{}].{}[{}]{}{}", names_.servers, server, names_.devices, device,
                       key.empty() ? "" : ".", key);
  }

  void cards(std::size_t s, Chip chip) {
    std::vector<std::uint32_t> ids;
    for (const Device& device : table_.servers[s].devices) ids.push_back(device.device_id);
    if (std::string wrong = cards_problem(chip, ids); !wrong.empty())
      found_.problem(at_server(s, names_.devices), std::move(wrong));
  }

  void device_ids(std::size_t s, Chip chip, std::string_view what) {
    for (std::size_t d = 0; d < table_.servers[s].devices.size(); ++d) {
      const std::uint32_t id = table_.servers[s].devices[d].device_id;
      if (id != kUnknown && id >= cards_of(chip))
        found_.problem(at_device(s, d, "device_id"), fmt::format("'{}': {}", id, what));
    }
  }

  void servers() {
    std::unordered_map<std::string_view, std::size_t> first;
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      const Server& server = table_.servers[s];
      if (!server.spoiled) {
        if (server.server_id.empty()) found_.problem(at_server(s, "server_id"), "is empty");
        if (server.server_id.size() > kServerIdBytesMax) {
          found_.problem(
              at_server(s, "server_id"),
              fmt::format("'{}' has {} bytes; HCCL takes at most {}", shown(server.server_id),
                          server.server_id.size(), kServerIdBytesMax));
        }
        const auto [place, added] = first.try_emplace(server.server_id, s);
        if (!added && !server.server_id.empty()) {
          found_.problem(at_server(s, "server_id"),
                         fmt::format("'{}' is there twice, first at {}", shown(server.server_id),
                                     at_server(place->second)));
        }
        if (server.devices.empty())
          found_.problem(at_server(s, names_.devices),
                         "is empty; a server without devices has no part");
      }
    }
  }

  void ranks() {
    std::vector<Place> seen(ranks_, Place{kUnknown, 0});
    std::size_t mixed = 0, first_mixed = 0;
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      const Server& server = table_.servers[s];
      std::uint32_t least = kUnknown, most = 0;
      bool whole = !server.devices.empty();
      for (std::size_t d = 0; d < server.devices.size(); ++d) {
        const std::uint32_t rank = server.devices[d].rank_id;
        whole = whole && rank < ranks_;
        if (rank == kUnknown) continue;
        least = std::min(least, rank);
        most = std::max(most, rank);
        if (rank >= ranks_) {
          found_.problem(at_device(s, d, "rank_id"),
                         fmt::format("'{}': the table has {} ranks, so they are 0 to {}", rank,
                                     ranks_, ranks_ - 1));
          continue;
        }
        if (seen[rank].server != kUnknown) {
          found_.problem(
              at_device(s, d, "rank_id"),
              fmt::format(
                  "rank {} is there twice, first at {}; every rank from 0 to {} is there once",
                  rank, at_device(seen[rank].server, seen[rank].device), ranks_ - 1));
          continue;
        }
        seen[rank] = {s, d};
      }
      if (whole && most - least + 1 != server.devices.size() && mixed++ == 0) first_mixed = s;
    }
    if (mixed > 0) {
      found_.note(at_server(first_mixed),
                  fmt::format("ranks of '{}'{} are mixed with those of other servers; HCCL reads "
                              "it, but its documentation forbids it",
                              shown(table_.servers[first_mixed].server_id),
                              mixed > 1 ? fmt::format(" and {} more", mixed - 1) : ""));
    }
  }

  void addresses() {
    const bool many = table_.servers.size() > 1;
    const std::size_t pod_count = super_pods(table_).size();
    std::unordered_map<std::string, Place> first;
    first.reserve(ranks_);
    std::optional<std::size_t> count;
    std::optional<bool> family;
    std::size_t without = 0;
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      for (std::size_t d = 0; d < table_.servers[s].devices.size(); ++d) {
        const Device& device = table_.servers[s].devices[d];
        if (device.spoiled) continue;
        if (device.device_ip.empty()) {
          ++without;
          if (many && table_.servers[s].host_ip.empty() &&
              (table_.version == Version::Servers || pod_count > 1)) {
            found_.problem(
                at_device(s, d, "device_ip"),
                pod_count > 1
                    ? "is missing; with more than one super-pod every device needs its address"
                    : "is missing; with more than one server every device needs its address");
          }
          continue;
        }
        std::size_t addresses_here = 0;
        for (std::string_view rest = device.device_ip;; ++addresses_here) {
          const std::size_t comma = rest.find(',');
          one_address(s, d, rest.substr(0, comma), many, first, family);
          if (comma == std::string_view::npos) break;
          rest = rest.substr(comma + 1);
        }
        ++addresses_here;
        if (!count) count = addresses_here;
        if (*count != addresses_here)
          found_.problem(
              at_device(s, d, "device_ip"),
              fmt::format("has {} addresses, but the first device has {}; every device has as many",
                          addresses_here, *count));
      }
    }
    if (without == 0) return;
    if (!many)
      found_.note(
          "", fmt::format("{} of {} devices have no device_ip; one server may do without, but 910 "
                          "documentation calls it mandatory and HCCL_INTRA_ROCE_ENABLE=1 needs it",
                          without, ranks_));
    else if (table_.version == Version::SuperPods && pod_count <= 1)
      found_.note(
          "", fmt::format("{} of {} devices have no device_ip; readers of 2024 insist on it with "
                          "more than one server, and HCCL_INTER_HCCS_DISABLE=TRUE needs it",
                          without, ranks_));
  }

  void one_address(std::size_t s, std::size_t d, std::string_view text, bool many,
                   std::unordered_map<std::string, Place>& first, std::optional<bool>& family) {
    const auto address = parse_address(text);
    if (!address || is_unspecified(*address)) {
      found_.problem(at_device(s, d, "device_ip"),
                     fmt::format("'{}' is not an IPv4 or IPv6 address of a card", shown(text)));
      return;
    }
    if (many) {
      if (!family) family = address->v6;
      if (*family != address->v6)
        found_.problem(
            at_device(s, d, "device_ip"),
            fmt::format("'{}' is {}, but others are {}; a table has one kind", shown(text),
                        address->v6 ? "IPv6" : "IPv4", address->v6 ? "IPv4" : "IPv6"));
    }
    std::string key(reinterpret_cast<const char*>(address->bytes.data()), address->v6 ? 16 : 4);
    key += address->scope;
    const auto [place, added] = first.try_emplace(std::move(key), Place{s, d});
    if (!added) {
      found_.problem(
          at_device(s, d, "device_ip"),
          fmt::format(
              "'{}' is there twice, first at {}; every card of the cluster has its own address",
              shown(text), at_device(place->second.server, place->second.device)));
    }
  }

  void host_addresses() {
    const auto has = [](const Server& server) { return !server.host_ip.empty(); };
    if (std::ranges::none_of(table_.servers, has)) return;
    std::optional<bool> family;
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      const Server& server = table_.servers[s];
      if (server.spoiled) continue;
      if (server.host_ip.empty()) {
        found_.problem(at_server(s, "host_ip"),
                       "is missing, but other servers have one; all have it or none");
        continue;
      }
      const auto address = parse_address(server.host_ip);
      if (!address || is_unspecified(*address)) {
        found_.problem(at_server(s, "host_ip"),
                       fmt::format("'{}' is not an IPv4 or IPv6 address", shown(server.host_ip)));
        continue;
      }
      if (!family) family = address->v6;
      if (*family != address->v6)
        found_.problem(at_server(s, "host_ip"),
                       "is of another kind (IPv4, IPv6) than that of the first server");
    }
    if (table_.version == Version::Servers)
      found_.note("",
                  "servers have a host_ip: older readers then leave the cards' own addresses aside "
                  "and use the host's network; leave it out unless that is meant");
  }

  void pods() {
    const auto all = super_pods(table_);
    if (all.empty()) {
      found_.note("super_pod_list", "is missing: the table is then read without super-pods");
      return;
    }
    for (std::size_t s = 0; s < table_.servers.size(); ++s) {
      const Server& server = table_.servers[s];
      if (server.super_pod_id.empty() && !server.spoiled)
        found_.problem(at_server(s), fmt::format("'{}' is in no super-pod; every server is in one",
                                                 shown(server.server_id)));
    }
    for (const SuperPod& pod : all) {
      if (pod.servers.size() != all.front().servers.size()) {
        found_.problem(
            "super_pod_list",
            fmt::format("super-pod '{}' has {} of the servers, but '{}' has {}; all have as many",
                        shown(pod.id), pod.servers.size(), shown(all.front().id),
                        all.front().servers.size()));
      }
      if (pod.servers.back() - pod.servers.front() + 1 != pod.servers.size()) {
        found_.note("super_pod_list", fmt::format("servers of super-pod '{}' are mixed with those "
                                                  "of others; HCCL's documentation forbids it",
                                                  shown(pod.id)));
      }
      std::unordered_map<std::uint32_t, Place> first;
      for (const std::size_t s : pod.servers) super_devices(s, pod, first);
    }
  }

  void super_devices(std::size_t s, const SuperPod& pod,
                     std::unordered_map<std::uint32_t, Place>& first) {
    for (std::size_t d = 0; d < table_.servers[s].devices.size(); ++d) {
      const Device& device = table_.servers[s].devices[d];
      if (device.spoiled) continue;
      if (device.super_device_id.empty()) {
        found_.problem(at_device(s, d, "super_device_id"),
                       "is missing; `npu-smi info -t spod-info -i NPU -c CHIP` shows it as SDID");
        continue;
      }
      const auto number = parse_number(device.super_device_id);
      if (!number) {
        found_.problem(at_device(s, d, "super_device_id"),
                       fmt::format("'{}' is not a decimal number; write the SDID in decimal",
                                   shown(device.super_device_id)));
        continue;
      }
      const auto [place, added] = first.try_emplace(*number, Place{s, d});
      if (!added) {
        found_.problem(
            at_device(s, d, "super_device_id"),
            fmt::format("'{}' is there twice in super-pod '{}', first at {}", *number,
                        shown(pod.id), at_device(place->second.server, place->second.device)));
      }
    }
  }

  const RankTable& table_;
  const Names& names_;
  Findings& found_;
  std::size_t ranks_;
};

// Notes the first reason why one chip refuses a table that other chips accept.
void note_refusal(const Findings& of_chip, Chip chip, Findings& found) {
  if (of_chip.problems.empty()) return;
  const Finding& first = of_chip.problems.front();
  found.note("",
             fmt::format("a {} refuses it: {}: {}", to_string(chip), first.where, first.message));
}

}  // namespace

Findings check(const RankTable& table, std::optional<Chip> chip, const Names& names) {
  Findings found;
  Checker checker(table, names, found);
  checker.common();
  if (table.servers.empty() || table.rank_count() > kRanksMax) return found;
  checker.shared_devices(chip == Chip::A910);
  if (chip && chip != Chip::A910_93 && table.version == Version::SuperPods) {
    found.note("version",
               fmt::format("1.2: a {} reads it without its super-pods", to_string(*chip)));
  }
  if (chip == Chip::A910) checker.of_910();
  if (chip == Chip::A910B) checker.of_910b();
  if (chip == Chip::A910_93 || !chip) checker.of_910_93();
  if (!chip && found.problems.empty()) {
    Findings of_910, of_910b;
    if (Checker one(table, names, of_910); one.may_be_910()) one.of_910();
    if (table.version == Version::Servers) Checker(table, names, of_910b).of_910b();
    note_refusal(of_910, Chip::A910, found);
    note_refusal(of_910b, Chip::A910B, found);
  }
  return found;
}

}  // namespace muster::ranktable
