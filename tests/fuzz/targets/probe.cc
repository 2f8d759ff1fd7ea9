// Device tools. The input has one machine's npu-smi, hccn_tool and nvidia-smi, as recorded in
// tests/fixtures/probe. "== TOOL ARGUMENTS" begins what a call prints; its last line may be "=>
// status N". It goes through the sources of devices, and the whole input goes through every parser.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "agent/probe/ascend.h"
#include "agent/probe/card_network.h"
#include "agent/probe/fixed_inventory.h"
#include "agent/probe/npu_smi.h"
#include "agent/probe/nvidia.h"
#include "agent/probe/nvidia_smi.h"
#include "agent/probe/text.h"
#include "common/base/utf8.h"
#include "common/engine/ranktable/hccn.h"
#include "common/engine/ranktable/words.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::agent::probe;

class Machine {
 public:
  explicit Machine(std::string_view text) {
    Answer* to = nullptr;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      if (line.starts_with("== "))
        to = &answers_[std::string(line.substr(3))];
      else if (to != nullptr && line.starts_with("=> status "))
        std::from_chars(line.data() + 10, line.data() + line.size(), to->status);
      else if (to != nullptr)
        to->output.append(line).append("\n");
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  [[nodiscard]] Ask ask() const {
    return [this](const std::vector<process::ToolRequest>& requests) {
      std::vector<process::ToolAnswer> answers;
      answers.reserve(requests.size());
      for (const auto& request : requests) answers.push_back(answer(request));
      return answers;
    };
  }
  [[nodiscard]] std::string file(const char* name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? "" : found->second.output;
  }

 private:
  struct Answer {
    std::string output;
    int status = 0;
  };

  [[nodiscard]] process::ToolAnswer answer(const process::ToolRequest& request) const {
    std::string title = request.program;
    for (const std::string& word : request.args) title += " " + word;
    process::ToolAnswer answer;
    const auto found = answers_.find(title);
    if (found != answers_.end()) {
      answer.output = found->second.output;
      answer.status = found->second.status;
      if (*answer.status != 0)
        answer.why = "it ended with status " + std::to_string(*answer.status);
      return answer;
    }
    answer.absent = std::ranges::none_of(
        answers_, [&](const auto& one) { return one.first.starts_with(request.program + " "); });
    answer.why =
        answer.absent ? "there is no " + request.program + " on PATH" : "it ended with status 64";
    if (!answer.absent) answer.status = 64;
    return answer;
  }

  std::map<std::string, Answer> answers_;
};

void check_occupant(const Occupant& occupant) {
  require(is_plain(occupant.name) && is_plain(occupant.user),
          "a process has a name that can be shown", occupant.name);
  require(occupant.pid >= 0, "a pid is a pid");
}

void check_found(const Found& found) {
  require(found.devices.size() <= kDevicesMax, "devices are bounded");
  require(!found.asked || found.none || !found.devices.empty() || !found.findings.empty(),
          "a tool that gives no device is spoken of");
  require(!found.none || found.devices.empty(), "a node without devices has none");
  std::set<std::uint32_t> ids;
  std::size_t occupants = 0;
  for (const Device& device : found.devices) {
    require(ids.insert(device.id).second, "a device is there once", to_text(device));
    require(is_plain(device.name) && is_plain(device.bus_id) && is_plain(device.uuid) &&
                is_plain(device.health.text),
            "a device can be shown", to_text(device));
    for (const std::string& address : device.addresses)
      require(ranktable::parse_address(address).has_value(), "a card's address is one", address);
    for (const auto* id : {&device.super_device_id, &device.super_pod_id})
      require(!*id || is_plain(**id), "an id can be shown");
    occupants += device.occupants.size();
    std::ranges::for_each(device.occupants, check_occupant);
  }
  require(occupants <= kOccupantsMax, "processes are bounded");
  for (const std::string& finding : found.findings)
    require(is_message(finding) && finding.find('\n') == std::string::npos,
            "a finding is a sentence", finding);
}

void check_parsers(std::string_view input) {
  const NpuInfo info = parse_npu_info(input);
  require(info.chips.size() <= kDevicesMax && info.processes.size() <= kOccupantsMax &&
              info.messages.size() <= 8,
          "a table is bounded");
  for (const NpuChip& chip : info.chips)
    require(is_plain(chip.name) && is_plain(chip.health) && is_plain(chip.bus_id),
            "a chip can be shown", chip.name);
  for (const NpuProcess& process : info.processes) check_occupant(process.occupant);
  for (const std::string& line : info.messages)
    require(is_plain(line), "what a tool says can be shown", line);
  require(parse_npu_mapping(input).size() <= kDevicesMax &&
              parse_npu_list(input).cards.size() <= kDevicesMax,
          "a list is bounded");
  const NpuHealth health = parse_npu_health(input);
  require(is_plain(health.status) && is_plain(health.error), "health can be shown", health.error);
  const NpuBoard board = parse_npu_board(input);
  require(is_plain(board.chip_name) && is_plain(board.bus_id), "a board can be shown");
  (void)parse_npu_usages(input);
  (void)parse_npu_super_pod(input);
  (void)parse_link(input);
  if (const auto wrong = parse_net_health(input))
    require(is_plain(*wrong), "a card's trouble can be shown", *wrong);
  (void)says_no_card(input);
  (void)says_no_gpu(input);
  (void)says_no_address(input);
  require(parse_gpus(input).devices.size() <= kDevicesMax &&
              parse_gpu_processes(input).size() <= kOccupantsMax,
          "a list is bounded");
  if (const auto address = ranktable::address_of_tool(input))
    require(ranktable::parse_address(*address).has_value(), "an address is one", *address);
  if (const auto conf = ranktable::addresses_of_conf(input); !conf)
    require(is_message(conf.error().message), "an error is a sentence", conf.error().message);
}

void check_inventory(std::string_view input) {
  const auto devices = parse_fixed_inventory(input);
  if (!devices)
    return require(is_message(devices.error().message), "an error is a sentence",
                   devices.error().message);
  require(devices->size() <= kDevicesMax, "devices are bounded");
  for (std::size_t i = 1; i < devices->size(); ++i)
    require((*devices)[i - 1].id < (*devices)[i].id, "devices are by number, each once");
  for (const Device& device : *devices)
    require(is_utf8(to_text(device)), "a device can be shown", to_text(device));
}

}  // namespace

void probe(std::string_view input) {
  const Machine machine(input);
  check_found(ask_ascend(machine.ask(), {.hccn_conf = machine.file("/etc/hccn.conf")}));
  check_found(ask_nvidia(machine.ask()));
  check_parsers(input);
  check_inventory(input);
  require(is_plain(clean(input)) && is_utf8(printed(input)), "what a tool printed can be shown",
          printed(input));
}

}  // namespace muster::fuzz
