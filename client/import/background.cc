#include "client/import/background.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "client/import/launch_draft.h"

namespace muster::import {
namespace {

constexpr int kParentsMost = 4;  // directories above a rank's that may have the code

std::optional<std::uint32_t> number_of(const Captured& call, std::string_view name) {
  const std::string_view text = value_of(call.env, name);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> rank_of(const Captured& call) {
  for (const char* name : {"RANK_ID", "RANK", "MS_NODE_ID"})
    if (const auto number = number_of(call, name)) return number;
  return std::nullopt;
}

// True if in each rank's word, the rank's own value of the variable is at the place of the first
// rank's value, and the rest is equal.
bool is_own_number(const std::vector<const Captured*>& ranks, std::size_t word,
                   const char* variable, std::size_t at, std::size_t length) {
  const std::string& first = ranks.front()->words[word];
  return std::ranges::all_of(ranks, [&](const Captured* rank) {
    const std::string_view value = value_of(rank->env, variable);
    return !value.empty() && rank->words[word] == first.substr(0, at) + std::string(value) +
                                                      first.substr(at + length);
  });
}

// Merges the word at one position of all ranks' commands: it is the same everywhere, or contains
// each rank's own number ("/data/part-3").
std::optional<std::string> common_word(const std::vector<const Captured*>& ranks,
                                       std::size_t word) {
  constexpr auto kNumbers =
      std::to_array<std::pair<const char*, const char*>>({{"RANK_ID", "${rank}"},
                                                          {"RANK", "${rank}"},
                                                          {"MS_NODE_ID", "${rank}"},
                                                          {"LOCAL_RANK", "${local_rank}"},
                                                          {"DEVICE_ID", "${device_id}"}});
  const std::string& first = ranks.front()->words[word];
  if (std::ranges::all_of(ranks, [&](const Captured* rank) { return rank->words[word] == first; }))
    return launcher::literal(first);
  for (const auto& [variable, name] : kNumbers) {
    const std::string value(value_of(ranks.front()->env, variable));
    for (std::size_t at = value.empty() ? std::string::npos : first.find(value);
         at != std::string::npos; at = first.find(value, at + 1))
      if (is_own_number(ranks, word, variable, at, value.size()))
        return launcher::literal(first.substr(0, at)) + name +
               launcher::literal(first.substr(at + value.size()));
  }
  return std::nullopt;
}

Result<std::vector<std::string>> common_words(const std::vector<const Captured*>& ranks) {
  const auto differ = [&](const Captured& other, const std::string& one, const std::string& two) {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("ranks {} and {} are started with different words ('{}', '{}') that are not "
                    "their numbers; write a job.yaml by hand, with launch.per: node "
                    "and the script as it is",
                    *rank_of(*ranks.front()), *rank_of(other), one, two));
  };
  std::vector<std::string> words;
  for (const Captured* rank : ranks)
    if (rank->words.size() != ranks.front()->words.size())
      return differ(*rank, fmt::format("{} of them", ranks.front()->words.size()),
                    fmt::format("{} of them", rank->words.size()));
  for (std::size_t at = 0; at < ranks.front()->words.size(); ++at) {
    const auto word = common_word(ranks, at);
    if (!word) {
      const auto* other = *std::ranges::find_if(
          ranks, [&](const Captured* rank) { return rank->words[at] != ranks.front()->words[at]; });
      return differ(*other, ranks.front()->words[at], other->words[at]);
    }
    words.push_back(*word);
  }
  return words;
}

bool apart(const std::vector<const Captured*>& ranks) {
  return std::ranges::any_of(
      ranks, [&](const Captured* rank) { return rank->directory != ranks.front()->directory; });
}

// If each rank runs in a copy of its own (mf_parallel0), the code is the tree that the copies were
// made from. That is the next directory above that also has the script.
std::string code_of(const std::vector<const Captured*>& ranks, const std::string& script,
                    const IsFile& is_file) {
  const std::string& first = ranks.front()->directory;
  std::string folder = first;
  for (int i = 0; apart(ranks) && !script.empty() && script.front() != '/' && i < kParentsMost;
       ++i) {
    folder = folder.substr(0, folder.rfind('/'));
    if (folder.empty()) break;
    if (is_file(folder + "/" + script)) return folder;
  }
  return first;
}

// Removes the interpreter's own options: `python -u -W ignore x.py`.
void take_interpreter(std::vector<std::string>& words, launcher::Draft& draft) {
  const std::string name = words.front();
  if (name != "python" && name != "python3") draft.python = name;
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "-c" && words[at] != "-m")
    at += words[at] == "-W" || words[at] == "-X" ? 2 : 1;
  if (at >= words.size() || words[at].starts_with('-')) {  // a module, or program text
    draft.run = words;
    return;
  }
  draft.script = words[at];
  draft.args.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
}

// Of ranks without an engine's own variable, torchrun could be the launcher.
const engine::Engine& engine_of_rank(const Captured& rank, const std::vector<std::string>& args) {
  for (const engine::Engine& engine : engine::engine_table())
    for (const std::string_view variable : engine.signs.rank_variables)
      if (!value_of(rank.env, variable).empty()) return engine;
  return engine_of(launcher::Launcher::Torchrun, args);
}

void put_resources(const std::vector<const Captured*>& ranks, launcher::Draft& draft) {
  const auto count = static_cast<std::uint32_t>(ranks.size());
  draft.devices = count;
  draft.remarks["resources.devices"] = {
      fmt::format("the script starts {} rank{} on this machine", count, count == 1 ? "" : "s")};
  for (const char* name : {"RANK_SIZE", "WORLD_SIZE", "MS_WORKER_NUM"}) {
    const auto size = number_of(*ranks.front(), name);
    if (!size || *size == 0 || *size % count != 0) continue;
    draft.nodes = *size / count;
    draft.remarks["resources.nodes"] = {fmt::format("{}={}, {} to a node", name, *size, count)};
    break;
  }
  // The cards of a rank table. On several nodes, every node has the same cards, from 0 on.
  std::vector<std::uint32_t> cards;
  for (const Captured* rank : ranks)
    if (const auto card = number_of(*rank, "DEVICE_ID")) cards.push_back(*card);
  bool from_zero = true;
  for (std::size_t i = 0; i < cards.size(); ++i) from_zero = from_zero && cards[i] == i;
  if (cards.size() != count || from_zero || std::set(cards.begin(), cards.end()).size() != count)
    return;
  draft.device_ids = cards;
  draft.remarks["resources.devices"] = {"DEVICE_ID of the script's ranks"};
}

}  // namespace

Result<launcher::Draft> draft_of_ranks(const std::vector<Captured>& calls, const IsFile& is_file) {
  std::vector<const Captured*> ranks;
  for (const Captured& call : calls)
    if (value_of(call.env, "MS_ROLE") != "MS_SCHED" && rank_of(call)) ranks.push_back(&call);
  if (ranks.empty())
    return fail(ErrorCode::InvalidArgument,
                "the processes that it started have no number in RANK_ID, RANK or MS_NODE_ID");
  std::ranges::sort(ranks, {}, [](const Captured* call) { return *rank_of(*call); });
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (rank_of(*ranks[i]) == rank_of(*ranks[i - 1]))
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("it started rank {} twice; a job has one launch", *rank_of(*ranks[i])));
  auto words = common_words(ranks);
  if (!words) return fail(std::move(words.error()));
  launcher::Draft draft;
  const Captured& first = *ranks.front();
  take_interpreter(*words, draft);
  const engine::Engine& engine = engine_of_rank(first, draft.args);
  draft.engine = engine.name;
  if (!value_of(first.env, "MS_ROLE").empty()) draft.launcher = "msrun";
  draft.code = code_of(ranks, draft.script, is_file);
  take_options(engine, draft);
  // Otherwise each rank has a directory of its own, as the engine defines it.
  if (engine.signs.rank_cwd && !apart(ranks)) draft.cwd = launcher::literal(first.directory);
  put_resources(ranks, draft);
  return draft;
}

}  // namespace muster::import
