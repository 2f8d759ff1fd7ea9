// Every recorded machine: what muster makes of its output, and of every beginning of its output.
#include "recorded.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "agent/probe/ascend.h"
#include "agent/probe/card_network.h"
#include "agent/probe/npu_smi.h"
#include "agent/probe/nvidia.h"
#include "agent/probe/nvidia_smi.h"
#include "common/engine/ranktable/hccn.h"

namespace muster::agent::probe {
namespace {

Found ascend_of(const Recorded& machine) {
  return ask_ascend(machine.ask(), {.hccn_conf = machine.section("/etc/hccn.conf")});
}

std::string all_of(const Recorded& machine) {
  std::string text;
  const auto put = [&](const char* maker, const Found& found) {
    if (found.asked)
      text += std::string(maker) + (found.none ? ": none\n" : ":\n") + lines_of(found);
  };
  put("ascend", ascend_of(machine));
  put("nvidia", ask_nvidia(machine.ask()));
  return text;
}

TEST(Recorded, EveryMachineIsWhatItsFileSays) {
  const auto names = machines();
  ASSERT_GE(names.size(), 20U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Recorded machine(name);
    EXPECT_TRUE(machine.head().starts_with("# ")) << "where is it from?";
    const std::string text = all_of(machine);
    if (std::getenv("MUSTER_REWRITE") != nullptr) {
      machine.rewrite_expected(text);
    } else {
      EXPECT_EQ(text, machine.section("expected")) << "MUSTER_REWRITE=1 writes it anew";
    }
  }
}

// No beginning of an output leads to a device that does not exist, to a number twice, or to a
// crash. A tool that was stopped in the middle is always reported as stopped.
TEST(Recorded, EveryBeginningOfATable) {
  for (const std::string& name : machines()) {
    const Recorded whole(name);
    std::set<std::uint32_t> cards;
    for (const Device& device : ascend_of(whole).devices) cards.insert(device.card);
    for (const std::string title : {"npu-smi info", "npu-smi info -m"}) {
      const std::string text = whole.section(title);
      Recorded cut(name);
      for (std::size_t size = 0; size < text.size(); ++size) {
        cut.set(title, text.substr(0, size));
        cut.set_why(title, "it did not end within 5000 ms");
        const Found found = ascend_of(cut);
        std::set<std::uint32_t> ids;
        for (const Device& device : found.devices) {
          ASSERT_TRUE(ids.insert(device.id).second) << name << " '" << title << "' cut at " << size;
          ASSERT_TRUE(cards.contains(device.card)) << name << " '" << title << "' cut at " << size;
        }
        ASSERT_TRUE(found.none || !found.findings.empty())
            << name << " '" << title << "' cut at " << size;
      }
    }
  }
}

// A row that was cut off does not count, because its numbers would be wrong.
TEST(Recorded, EveryBeginningOfATableHasOnlyWholeChips) {
  for (const std::string& name : machines()) {
    const std::string text = Recorded(name).section("npu-smi info");
    const NpuInfo whole = parse_npu_info(text);
    for (std::size_t size = 0; size < text.size(); ++size) {
      const NpuInfo info = parse_npu_info(std::string_view(text).substr(0, size));
      ASSERT_LE(info.chips.size(), whole.chips.size());
      for (std::size_t at = 0; at < info.chips.size(); ++at) {
        ASSERT_EQ(info.chips[at].memory_total_mib, whole.chips[at].memory_total_mib)
            << name << " cut at " << size;
        ASSERT_EQ(info.chips[at].bus_id, whole.chips[at].bus_id) << name << " cut at " << size;
        ASSERT_EQ(info.chips[at].name, whole.chips[at].name) << name << " cut at " << size;
      }
      ASSERT_LE(info.processes.size(), whole.processes.size());
      for (std::size_t at = 0; at < info.processes.size(); ++at)
        ASSERT_EQ(info.processes[at].occupant.pid, whole.processes[at].occupant.pid);
    }
  }
}

TEST(Recorded, EveryBeginningThroughEveryParser) {
  std::size_t values = 0;
  for (const std::string& name : machines()) {
    const Recorded machine(name);
    for (const auto& [title, text] : machine.sections()) {
      for (std::size_t size = 0; size <= text.size(); ++size) {
        const std::string_view cut = std::string_view(text).substr(0, size);
        values += parse_npu_mapping(cut).size() + parse_npu_list(cut).cards.size() +
                  parse_npu_health(cut).status.size() + parse_npu_board(cut).bus_id.size();
        values += parse_npu_usages(cut).memory_total_mib.value_or(0) > 0 ? 1 : 0;
        values += parse_npu_super_pod(cut).device_id ? 1 : 0;
        values += parse_link(cut) ? 1 : 0;
        values += parse_net_health(cut) ? 1 : 0;
        values += parse_gpus(cut).devices.size() + parse_gpu_processes(cut).size();
        values += ranktable::address_of_tool(cut) ? 1 : 0;
        if (const auto conf = ranktable::addresses_of_conf(cut)) values += conf->size();
      }
    }
  }
  EXPECT_GT(values, 50'000U) << "the parsers read nothing";
}

// Replaces each character of a table by bytes that are not text.
TEST(Recorded, EveryByteReplaced) {
  const Recorded machine("910b_alarm");
  const std::string text = machine.section("npu-smi info");
  for (const char byte : {'\0', '\n', '|', '/', '\xFF', '9'}) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::string other = text;
      other[at] = byte;
      const NpuInfo info = parse_npu_info(other);
      ASSERT_LE(info.chips.size(), 5U);
      for (const NpuChip& chip : info.chips) {
        for (const std::string& words : {chip.name, chip.health}) {
          ASSERT_TRUE(std::ranges::all_of(words, [](char c) {
            return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F;
          }));
        }
      }
    }
  }
}

TEST(Recorded, MoreThanANodeHolds) {
  std::string table =
      "| NPU   Name | Health | Power(W) |\n| Chip | Bus-Id | AICore(%) Memory-Usage(MB) "
      "HBM-Usage(MB) |\n";
  for (int round = 0; round < 20'000; ++round)
    table += "| 0 910B3 | OK | 1 |\n| 0 | 0000:C1:00.0 | 0 0 / 0 1 / 2 |\n";
  table += "| NPU Chip | Process id | Process name | Process memory(MB) |\n";
  for (int round = 0; round < 20'000; ++round) table += "| 0 0 | 1 | x | 1 |\n";
  const NpuInfo info = parse_npu_info(table);
  EXPECT_EQ(info.chips.size(), 256U);
  EXPECT_EQ(info.processes.size(), 4096U);
  Recorded machine("910b_alarm");
  machine.set("npu-smi info", table);
  EXPECT_LE(ascend_of(machine).devices.size(), 256U);
}

}  // namespace
}  // namespace muster::agent::probe
