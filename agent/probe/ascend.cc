#include "agent/probe/ascend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/probe/card_network.h"
#include "agent/probe/npu_smi.h"
#include "agent/probe/text.h"
#include "common/engine/ranktable/hccn.h"
#include "common/engine/ranktable/words.h"

namespace muster::agent::probe {
namespace {

constexpr const char* kSmi = "npu-smi";
constexpr const char* kHccn = "hccn_tool";

using Place = std::pair<std::uint32_t, std::uint32_t>;  // card, chip

// The answer in "Key : value" form, if it is complete: a value that was cut off could pass for
// another one.
std::string_view whole(const process::ToolAnswer& answer) {
  return answer.why.empty() ? std::string_view(answer.output) : std::string_view{};
}

// Runs the queries for one node in order. The members hold what is known so far.
class Reader {
 public:
  Reader(const Ask& ask, const AscendOptions& options) : ask_(ask), options_(options) {}

  Found read() {
    const auto answers = ask_({{kSmi, {"info"}}, {kSmi, {"info", "-m"}}, {kSmi, {"info", "-l"}}});
    if (std::ranges::all_of(answers, &process::ToolAnswer::absent)) return std::move(found_);
    found_.asked = true;
    info_ = parse_npu_info(answers[0].output);
    mapping_ = parse_npu_mapping(answers[1].output);
    const NpuList list = parse_npu_list(answers[2].output);
    say_what_failed(answers, list);
    if (found_.none) return std::move(found_);
    join();
    compare(list);
    number();
    if (found_.devices.empty()) return std::move(found_);
    ask_details();
    ask_addresses();
    ask_links();
    return std::move(found_);
  }

 private:
  void finding(std::string text) { found_.findings.push_back(std::move(text)); }

  void say_what_failed(const std::vector<process::ToolAnswer>& answers, const NpuList& list) {
    found_.none = info_.chips.empty() && mapping_.empty() && list.cards.empty() &&
                  std::ranges::any_of(answers, [](const process::ToolAnswer& answer) {
                    return says_no_card(answer.output);
                  });
    if (found_.none) return;
    if (info_.chips.empty()) {
      finding(fmt::format("npu-smi info gave no devices: {}", why_not(answers[0])));
    } else {
      for (const std::string& line : info_.messages)
        finding(fmt::format("npu-smi says '{}'", line));
      if (!answers[0].why.empty())
        finding(fmt::format("the table of npu-smi info may not be whole: {}", answers[0].why));
    }
    if (!info_.half.empty())
      finding(fmt::format("npu-smi info shows only half of card{} {}",
                          info_.half.size() == 1 ? "" : "s", fmt::join(info_.half, ",")));
    if (mapping_.empty() && !info_.chips.empty())
      finding(fmt::format(
          "npu-smi info -m gave no numbers: {}; devices are numbered in the order of their cards",
          why_not(answers[1])));
    if (!mapping_.empty() && !answers[1].why.empty())
      finding(fmt::format("the numbers of npu-smi info -m may not be whole: {}", answers[1].why));
  }

  // Joins the table and the mapping, with each chip once.
  void join() {
    std::map<Place, Device> devices;
    for (const NpuChip& chip : info_.chips) {
      Device device{.type = type_of(chip.name, info_.a3, chip.ddr),
                    .name = chip.name,
                    .bus_id = chip.bus_id,
                    .uuid = {},
                    .card = chip.card,
                    .chip = chip.chip};
      device.memory_total_mib = chip.memory_total_mib;
      device.memory_used_mib = chip.memory_used_mib;
      if (chip.physical) physical_[{chip.card, chip.chip}] = *chip.physical;
      if (chip.logic) logic_[{chip.card, chip.chip}] = *chip.logic;
      if (chip.health != "OK")
        device.health.add(
            level_of(chip.health),
            "npu-smi says " + (chip.health.empty() ? "nothing of its health" : chip.health));
      if (!devices.emplace(Place{chip.card, chip.chip}, std::move(device)).second) {
        finding(fmt::format("npu-smi info shows chip {} of card {} twice; the first is taken",
                            chip.chip, chip.card));
      }
    }
    for (const NpuPlace& place : mapping_) {
      logic_[{place.card, place.chip}] = place.logic;
      if (place.physical) physical_[{place.card, place.chip}] = *place.physical;
      Device device{.type = type_of(place.name, place.a3, false),
                    .name = place.name,
                    .bus_id = {},
                    .uuid = {},
                    .card = place.card,
                    .chip = place.chip};
      if (devices.emplace(Place{place.card, place.chip}, std::move(device)).second)
        unseen_.insert({place.card, place.chip});
    }
    for (const NpuProcess& process : info_.processes) {
      const auto at = devices.find({process.card, process.chip});
      if (at != devices.end()) at->second.occupants.push_back(process.occupant);
    }
    for (auto& [place, device] : devices) found_.devices.push_back(std::move(device));
  }

  void compare(const NpuList& list) {
    std::set<std::uint32_t> cards;
    for (const Device& device : found_.devices) cards.insert(device.card);
    std::vector<std::uint32_t> missing;
    std::ranges::copy_if(list.cards, std::back_inserter(missing),
                         [&](std::uint32_t card) { return !cards.contains(card); });
    if (!missing.empty()) {
      finding(fmt::format("npu-smi lists card{} {} and does not show {}",
                          missing.size() == 1 ? "" : "s", fmt::join(missing, ","),
                          missing.size() == 1 ? "it" : "them"));
    } else if (list.total.value_or(0) > cards.size()) {
      finding(fmt::format("npu-smi counts {} cards and shows {}", *list.total, cards.size()));
    }
    if (info_.chips.empty() || mapping_.empty()) return;
    std::vector<std::string> only_table;
    for (const NpuChip& chip : info_.chips) {
      if (std::ranges::none_of(mapping_, [&](const NpuPlace& place) {
            return place.card == chip.card && place.chip == chip.chip;
          })) {
        only_table.push_back(fmt::format("{}.{}", chip.card, chip.chip));
      }
    }
    if (!only_table.empty())
      finding(fmt::format(
          "npu-smi info -m does not name {}; left out: nobody knows how a program would call it",
          fmt::join(only_table, ",")));
    std::erase_if(found_.devices, [&](const Device& device) {
      return !logic_.contains({device.card, device.chip});
    });
  }

  // Logical numbers come from -m (or from the table's Device column), else from the order. Physical
  // numbers come from Phy-ID, else from the card if each card has one chip.
  void number() {
    const bool one_chip_a_card =
        std::ranges::all_of(found_.devices, [](const Device& device) { return device.chip == 0; });
    std::uint32_t next = 0;
    for (Device& device : found_.devices) {
      const Place place{device.card, device.chip};
      const auto logic = logic_.find(place);
      device.id = logic != logic_.end() ? logic->second : next;
      ++next;
      const auto physical = physical_.find(place);
      device.physical_id = physical != physical_.end() ? physical->second
                           : one_chip_a_card           ? device.card
                                                       : device.id;
    }
    std::ranges::stable_sort(found_.devices, {}, &Device::id);
    for (std::size_t at = 1; at < found_.devices.size();) {
      if (found_.devices[at].id != found_.devices[at - 1].id) {
        ++at;
        continue;
      }
      finding(fmt::format(
          "npu-smi gives the number {} to two chips, {}.{} and {}.{}; the first is taken",
          found_.devices[at].id, found_.devices[at - 1].card, found_.devices[at - 1].chip,
          found_.devices[at].card, found_.devices[at].chip));
      found_.devices.erase(found_.devices.begin() + static_cast<std::ptrdiff_t>(at));
    }
    // A soft-partitioned A3 shows one die twice with the same physical number.
    std::map<std::uint32_t, std::uint32_t> first;
    for (const Device& device : found_.devices) {
      const auto [place, added] = first.emplace(device.physical_id, device.id);
      if (!added)
        finding(fmt::format("devices {} and {} are one chip (physical number {})", place->second,
                            device.id, device.physical_id));
    }
  }

  static process::ToolRequest about(const Device& device, const char* type) {
    return {
        kSmi,
        {"info", "-t", type, "-i", std::to_string(device.card), "-c", std::to_string(device.chip)}};
  }

  // Queries the health of devices that are not OK or that the table did not show. Queries bus and
  // memory of the latter, and the super-pod of an A3.
  void ask_details() {
    std::vector<process::ToolRequest> requests;
    std::vector<std::pair<std::size_t, char>> whose;  // device, what
    for (std::size_t at = 0; at < found_.devices.size(); ++at) {
      const Device& device = found_.devices[at];
      const bool unseen = unseen_.contains({device.card, device.chip});
      const auto put = [&](char what, const char* type) {
        requests.push_back(about(device, type));
        whose.emplace_back(at, what);
      };
      if (unseen || device.health.level != HealthLevel::Ok) put('h', "health");
      if (device.bus_id.empty()) put('b', "board");
      if (unseen) put('u', "usages");
      if (device.type == DeviceType::Ascend910_93) put('s', "spod-info");
    }
    if (requests.empty()) return;
    const auto answers = ask_(requests);
    Failures no_health("npu-smi info -t health gave nothing"),
        no_pod("npu-smi info -t spod-info gave no super-pod");
    for (std::size_t at = 0; at < answers.size(); ++at) {
      Device& device = found_.devices[whose[at].first];
      const std::string_view output = whole(answers[at]);
      switch (whose[at].second) {
        case 'h': take_health(device, answers[at], no_health); break;
        case 'b': {
          const NpuBoard board = parse_npu_board(output);
          device.bus_id = board.bus_id;
          if (device.name.empty()) device.name = board.chip_name;
          break;
        }
        case 'u': {
          const NpuUsages usages = parse_npu_usages(output);
          device.memory_total_mib = usages.memory_total_mib;
          device.memory_used_mib = usages.memory_used_mib;
          break;
        }
        case 's': {
          const NpuSuperPod pod = parse_npu_super_pod(output);
          device.super_device_id = pod.device_id;
          device.super_pod_id = pod.pod_id;
          device.server_index = pod.server_index;
          if (!fact(output, "SDID")) no_pod.add(device.id, why_not(answers[at]));
          break;
        }
      }
    }
    no_health.into(found_.findings);
    no_pod.into(found_.findings);
  }

  void take_health(Device& device, const process::ToolAnswer& answer, Failures& failures) const {
    const NpuHealth health = parse_npu_health(whole(answer));
    if (unseen_.contains({device.card, device.chip})) {
      if (health.status.empty()) {
        device.health.add(HealthLevel::Warning, "npu-smi says nothing of its health");
      } else if (health.status != "OK") {
        device.health.add(level_of(health.status), "npu-smi says " + health.status);
      }
    }
    if (health.status.empty()) failures.add(device.id, why_not(answer));
    if (!health.error.empty()) device.health.add(HealthLevel::Ok, health.error);
  }

  // The addresses that one numbering of the cards gives, and for how many cards the source had any
  // answer.
  struct Numbered {
    std::map<std::uint32_t, std::string> by_device;  // Device::id ->
    std::size_t known = 0;
    bool absent = false;  // there is no tool
    bool stuck = false;   // the tool was killed after its time limit: more queries only take time
  };

  // hccn_tool numbers cards as the host does. Inside a container some releases number them as the
  // container does. The two numberings are never mixed, because one card would get another card's
  // address. The numbering with more answers is used; if both have as many, the host's.
  void ask_addresses() {
    const bool renumbered = std::ranges::any_of(
        found_.devices, [](const Device& device) { return device.id != device.physical_id; });
    Failures failures("hccn_tool -ip -g gave no address");
    Numbered best = by_tool(&Device::physical_id, &failures);
    const bool absent = best.absent;
    if (!absent && !best.stuck && renumbered && best.known < found_.devices.size()) {
      Failures others("hccn_tool -ip -g gave no address");
      if (Numbered other = by_tool(&Device::id, &others); other.known > best.known) {
        best = std::move(other);
        failures = std::move(others);
        hccn_id_ = &Device::id;
        finding("hccn_tool counts cards as this container does, not as its host");
      }
    }
    if (best.by_device.empty() && !options_.hccn_conf.empty()) {
      const auto conf = ranktable::addresses_of_conf(options_.hccn_conf);
      if (conf) {
        best = by_conf(*conf, &Device::physical_id);
        if (renumbered && best.known < found_.devices.size()) {
          if (Numbered other = by_conf(*conf, &Device::id); other.known > best.known)
            best = std::move(other);
        }
      } else {
        finding(fmt::format("hccn.conf gives no addresses: {}", conf.error().message));
      }
    }
    if (!absent) failures.into(found_.findings);
    std::map<std::string, std::uint32_t> owner;
    for (Device& device : found_.devices) {
      const auto address = best.by_device.find(device.id);
      if (address == best.by_device.end()) continue;
      const auto [place, added] = owner.emplace(address->second, device.id);
      if (!added)
        finding(fmt::format("devices {} and {} have the same address {}", place->second, device.id,
                            address->second));
      device.addresses = {address->second};
    }
  }

  Numbered by_tool(std::uint32_t Device::* number, Failures* failures) {
    std::vector<process::ToolRequest> requests;
    for (const Device& device : found_.devices)
      requests.push_back({kHccn, {"-i", std::to_string(device.*number), "-ip", "-g"}});
    const auto answers = ask_(requests);
    Numbered result;
    result.absent = std::ranges::all_of(answers, &process::ToolAnswer::absent);
    result.stuck = std::ranges::any_of(answers, [](const process::ToolAnswer& answer) {
      return !answer.absent && !answer.status;
    });
    for (std::size_t at = 0; at < answers.size(); ++at) {
      const auto address =
          answers[at].why.empty() ? ranktable::address_of_tool(answers[at].output) : std::nullopt;
      if (address) result.by_device.emplace(found_.devices[at].id, *address);
      if (address || says_no_address(answers[at].output)) {
        ++result.known;
      } else {
        failures->add(found_.devices[at].id, why_not(answers[at]));
      }
    }
    return result;
  }

  Numbered by_conf(const std::map<std::uint32_t, std::string>& conf,
                   std::uint32_t Device::* number) const {
    Numbered result;
    for (const Device& device : found_.devices) {
      const auto entry = conf.find(device.*number);
      if (entry == conf.end()) continue;
      const auto address = ranktable::parse_address(entry->second);
      if (!address || ranktable::is_unspecified(*address)) continue;
      ++result.known;
      result.by_device.emplace(device.id, entry->second);
    }
    return result;
  }

  // Queries only cards with an address: a card without an address is not meant to communicate, and
  // its link may be down.
  void ask_links() {
    std::vector<process::ToolRequest> requests;
    std::vector<std::size_t> whose;
    for (std::size_t at = 0; at < found_.devices.size(); ++at) {
      const Device& device = found_.devices[at];
      if (device.addresses.empty()) continue;
      requests.push_back({kHccn, {"-i", std::to_string(device.*hccn_id_), "-link", "-g"}});
      requests.push_back({kHccn, {"-i", std::to_string(device.*hccn_id_), "-net_health", "-g"}});
      whose.push_back(at);
    }
    if (requests.empty()) return;
    const auto answers = ask_(requests);
    if (answers.front().absent) return;
    Failures no_link("hccn_tool -link -g gave no state"),
        no_health("hccn_tool -net_health -g gave no state");
    for (std::size_t at = 0; at < whose.size(); ++at) {
      Device& device = found_.devices[whose[at]];
      const process::ToolAnswer &link = answers[2 * at], &health = answers[2 * at + 1];
      const auto up = parse_link(whole(link));
      if (!up) no_link.add(device.id, why_not(link));
      const auto trouble = parse_net_health(whole(health));
      if (!trouble) no_health.add(device.id, why_not(health));
      if (up && !*up) {
        device.health.add(HealthLevel::Warning, "its network link is down");
      } else if (trouble && !trouble->empty()) {
        device.health.add(HealthLevel::Warning, "its network: " + *trouble);
      }
    }
    no_link.into(found_.findings);
    no_health.into(found_.findings);
  }

  const Ask& ask_;
  const AscendOptions& options_;
  Found found_;
  NpuInfo info_;
  std::vector<NpuPlace> mapping_;
  std::map<Place, std::uint32_t> logic_, physical_;
  std::set<Place> unseen_;                                  // named by -m, but not in the table
  std::uint32_t Device::* hccn_id_ = &Device::physical_id;  // how hccn_tool numbers cards
};

}  // namespace

Found ask_ascend(const Ask& ask, const AscendOptions& options) {
  return Reader(ask, options).read();
}

}  // namespace muster::agent::probe
