// Rank tables: bytes -> JSON tree -> table -> judgement, and back to bytes; group lists and their
// conversions; the syntax of device ranges, addresses and paths.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "common/base/utf8.h"
#include "common/digest/sha256.h"
#include "common/engine/ranktable/device_range.h"
#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "common/engine/ranktable/words.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::ranktable;

constexpr std::array<std::optional<Chip>, 4> kChips = {std::nullopt, Chip::A910, Chip::A910B,
                                                       Chip::A910_93};

void check_findings(const Findings& findings) {
  require(findings.problems.size() <= kFindingsMax && findings.notes.size() <= kNotesMax,
          "findings are bounded");
  for (const auto* list : {&findings.problems, &findings.notes}) {
    for (const Finding& finding : *list) {
      require(is_message(finding.message), "a finding is a sentence", finding.message);
      require(is_utf8(finding.where), "a place is text", finding.where);
    }
  }
}

void check_tree(const Json& tree) {
  const std::string text = json_text(tree);
  require(is_utf8(text), "JSON that is written is text");
  const auto again = read_json(text);
  require(again.has_value(), "JSON that is written is read", text);
  require(json_text(*again) == text, "JSON stays the same when it is read and written", text);
}

bool dense(const RankTable& table) {
  std::vector<std::uint32_t> ranks;
  for (const Server& server : table.servers)
    for (const Device& device : server.devices) ranks.push_back(device.rank_id);
  std::ranges::sort(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != i) return false;
  return ranks.size() == table.rank_count();
}

void check_table(const RankTable& table) {
  require(dense(table), "the ranks of a sound table are 0, 1, 2 ...");
  const std::string text = table_text(table);
  const auto again = load_table(text);
  require(again.has_value(), "a sound table is read back", again ? "" : again.error().message);
  require(*again == table && table_text(*again) == text,
          "a table stays the same when it is written and read", text);

  const std::vector<RankTable> parts = per_server(table);
  require(parts.size() == table.servers.size(), "a table has one part a server");
  for (const RankTable& part : parts)
    require(dense(part) && part.servers.size() == 1, "a part has the ranks of one server");
  const auto whole = merge(parts);
  require(whole && whole->rank_count() == table.rank_count() && dense(*whole),
          "parts make a table again");

  if (const auto file = make_table_file(table)) {
    require(file->hash == sha256_hex(file->bytes) && file->hash.size() == 64,
            "the hash is that of the bytes");
    require(load_table(file->bytes).has_value(), "what is given to ranks is sound");
  } else {
    require(is_message(file.error().message), "an error is a sentence", file.error().message);
  }
}

void check_group_list(const Json& tree) {
  Findings found;
  const GroupList list = read_group_list(tree, found);
  check_findings(found);
  if (!found.problems.empty()) return;
  const RankTable by_hccl = as_hccl_reads(list);
  if (!list.lab) require(dense(by_hccl), "HCCL's ranks of a group list are 0, 1, 2 ...");
  const auto by_launcher = as_launcher_reads(list);
  if (!by_launcher)
    return require(is_message(by_launcher.error().message), "an error is a sentence",
                   by_launcher.error().message);
  require(by_launcher->rank_count() == by_hccl.rank_count(), "no device is lost or doubled");
  if (const auto again = load_table(table_text(*by_launcher, Layout::Launcher)))
    require(*again == *by_launcher, "a conversion is read back as it is");
}

void check_words(std::string_view input) {
  for (const auto& chip : kChips) {
    const auto range = parse_device_range(input, kDevicesPerServerMax, chip);
    if (!range)
      require(is_message(range.error().message), "an error is a sentence", range.error().message);
    else
      require(range->first < range->end && range->end <= kDevicesPerServerMax,
              "a range is within its server");
  }
  if (const auto visible = parse_visible_devices(input)) {
    require(!visible->empty() && visible->size() <= 4096, "a list of devices is bounded");
    if (const auto picked = pick_devices({.first = 0, .end = 1}, *visible))
      require(picked->size() == 1, "one device is asked for");
  } else {
    require(is_message(visible.error().message), "an error is a sentence", visible.error().message);
  }
  if (const auto address = parse_address(input)) {
    require(!(is_loopback(*address) && is_unspecified(*address)), "an address is one or the other");
  }
  require(is_utf8(server_id_problem(input)) && is_utf8(path_problem(input)), "a problem is text");
  const std::string word = shown(input);
  require(
      word.size() <= 64 &&
          std::ranges::none_of(word, [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
      "a word is fit to be shown", word);
}

}  // namespace

void ranktable(std::string_view input) {
  const auto tree = read_json(input);
  if (tree) check_tree(*tree);

  const Judgement common = judge(input, std::nullopt);
  for (const auto& chip : kChips) {
    const Judgement judgement = judge(input, chip);
    check_findings(judgement.findings);
    require((judgement.verdict == Verdict::Rejected) == !judgement.findings.problems.empty(),
            "what is rejected has a problem");
    require(judgement.verdict != Verdict::Acceptable || judgement.ranks > 0,
            "what is acceptable has ranks");
    if (judgement.form.starts_with("version") && judgement.verdict == Verdict::Acceptable)
      require(common.verdict == Verdict::Acceptable, "what one chip takes is right on all");
  }

  const auto table = load_table(input);
  if (table) {
    require(common.verdict == Verdict::Acceptable, "what is loaded is acceptable");
    check_table(*table);
  } else {
    require(is_message(table.error().message), "an error is a sentence", table.error().message);
    require(common.verdict != Verdict::Acceptable || common.form == "group list",
            "what is acceptable is loaded", table.error().message);
  }

  if (tree) {
    const auto head = read_head(*tree);
    if (head && head->completed && head->form == Form::GroupList) check_group_list(*tree);
  }
  if (input.size() <= 256) check_words(input);
}

}  // namespace muster::fuzz
