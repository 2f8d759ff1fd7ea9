#include "controller/api/log_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/engine/model/engine.h"

namespace muster::controller {
namespace {

constexpr std::size_t kShownMost = 16;  // nodes, or ranges of numbers, in one sentence

// "0-7, 9"
std::string ranges_text(const std::set<std::uint32_t>& numbers) {
  std::string text;
  std::size_t shown = 0;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    auto next = std::next(first);
    while (next != numbers.end() && *next == *last + 1) last = next++;
    if (++shown > kShownMost) return text + fmt::format(" and more, up to {}", *numbers.rbegin());
    if (!text.empty()) text += ", ";
    text += first == last ? fmt::format("{}", *first) : fmt::format("{}-{}", *first, *last);
    first = next;
  }
  return text;
}

std::string names_text(const std::set<NodeName>& names) {
  std::string text;
  std::size_t shown = 0;
  for (const NodeName& name : names) {
    if (++shown > kShownMost) return text + fmt::format(" and {} more", names.size() - kShownMost);
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name.str());
  }
  return text;
}

std::string names_text(const std::set<std::string>& names) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (++shown > kShownMost) return text + fmt::format(" and {} more", names.size() - kShownMost);
    // The name is any text from a client, and a terminal will show it.
    std::string plain = name.substr(0, 64);
    std::ranges::replace_if(plain, [](char c) { return c < ' ' || c > '~'; }, '?');
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", plain);
  }
  return text;
}

std::string counted(std::string_view noun, std::size_t count, const std::string& which) {
  return fmt::format("{}{} {}", noun, count == 1 ? "" : "s", which);
}
std::string there_are(std::string_view noun, std::size_t count, const std::string& which) {
  return fmt::format("there {} {}", count == 1 ? "is" : "are", counted(noun, count, which));
}

}  // namespace

LogSources log_sources(const core::JobRecord& job, const core::Presence& presence) {
  LogSources sources{.job = job.id, .name = job.spec.name(), .final = core::is_final(job.phase)};
  if (engine::has_scheduler(job.spec)) sources.node_logs.emplace("scheduler");
  if (!job.spec.runtime().setup().empty()) sources.node_logs.emplace(kSetupLog);
  const bool scripts = job.spec.launch().per() == v1::LAUNCH_PER_NODE;
  for (const core::AttemptRecord& attempt : job.attempts) {
    std::vector<LogSources::Part>& parts = sources.attempts[attempt.number];
    std::uint32_t training = 0;
    for (const core::NodePart& part : attempt.parts) {
      if (part.idle()) continue;
      const std::uint32_t inside =
          scripts
              ? std::max<std::uint32_t>(1, static_cast<std::uint32_t>(part.placed.devices.size()))
              : 0;
      parts.push_back({.node = part.placed.node,
                       .first = part.placed.first_rank,
                       .count = part.placed.rank_count,
                       .there = core::is_connected(presence, part.placed.node),
                       .collected = part.logs_collected,
                       .start_failed = part.start_failed.has_value(),
                       .training_first = training,
                       .training_count = inside});
      training += inside;
    }
  }
  return sources;
}

LogChoice::LogChoice(const v1::ReadLogsRequest& request)
    : chosen_ranks(request.ranks().begin(), request.ranks().end()) {
  for (const std::string& name : request.node_logs()) {
    if (name == kAllAuxiliaries) {
      all_auxiliaries = true;
    } else if (name == kFailedSetups) {
      failed_setups = true;
    } else {
      auxiliaries.insert(name);
    }
  }
  ranks = !chosen_ranks.empty() || !any_auxiliaries();
}

void find_training_ranks(LogSources& sources, std::span<const AttemptNo> chosen,
                         v1::ReadLogsRequest& request) {
  std::vector<const LogSources::Part*> parts;
  for (const AttemptNo attempt : chosen) {
    for (const LogSources::Part& part : sources.attempts.at(attempt)) {
      if (part.training_count > 0) parts.push_back(&part);
    }
  }
  const auto elsewhere = [&request](const LogSources::Part* part) {
    return part->node.str() != request.node();
  };
  // A node that has no part is refused later, by its name.
  if (!request.node().empty() && !std::ranges::all_of(parts, elsewhere))
    std::erase_if(parts, elsewhere);
  // `apart`: the ranks that are inside none of the scripts that the request names.
  std::set<std::uint32_t> scripts, inside, apart;
  for (const LogSources::Part* part : parts) {
    const std::uint32_t first = part->first.value;
    const bool named = std::ranges::any_of(request.ranks(), [&](std::uint32_t rank) {
      return rank >= first && rank - first < part->count;
    });
    for (std::uint32_t i = 0; i < part->count; ++i) scripts.insert(first + i);
    for (std::uint32_t i = 0; i < part->training_count; ++i) {
      inside.insert(part->training_first + i);
      if (!named) apart.insert(part->training_first + i);
    }
  }
  google::protobuf::RepeatedField<std::uint32_t> ranks;
  for (const std::uint32_t rank : request.ranks()) {
    const bool stays = scripts.contains(rank) || !inside.contains(rank);
    if (stays) ranks.Add(rank);
    if (stays && !(request.training_ranks() && apart.contains(rank))) continue;
    const std::string name = fmt::format("rank-{}", rank);
    request.add_node_logs(name);
    sources.node_logs.insert(name);
  }
  request.mutable_ranks()->Swap(&ranks);
}

std::optional<std::string> missing_auxiliaries(const LogSources& sources,
                                               std::set<std::string> there,
                                               const LogChoice& choice) {
  there.insert(sources.node_logs.begin(), sources.node_logs.end());
  std::set<std::string> missing;
  std::ranges::set_difference(choice.auxiliaries, there, std::inserter(missing, missing.end()));
  if (missing.empty()) return std::nullopt;
  return fmt::format(
      "reading the logs of job '{}' ({}): it has no log of {}; apart from its ranks' there {}",
      sources.name, sources.job.str(), names_text(missing),
      there.empty() ? "is none"
                    : fmt::format("{} {}", there.size() == 1 ? "is that of" : "are those of",
                                  names_text(there)));
}

std::optional<std::string> missing_logs(const LogSources& sources,
                                        std::span<const AttemptNo> chosen,
                                        const v1::ReadLogsRequest& request) {
  const std::string doing =
      fmt::format("reading the logs of job '{}' ({}): it has ", sources.name, sources.job.str());
  if (chosen.empty()) {
    std::set<std::uint32_t> numbers;
    for (const auto& entry : sources.attempts) numbers.insert(entry.first.value);
    return fmt::format("{}no attempt {}; {}", doing, request.attempt(),
                       numbers.empty()
                           ? "it was not placed yet"
                           : there_are("attempt", numbers.size(), ranges_text(numbers)));
  }
  if (request.node().empty() && request.ranks().empty()) return std::nullopt;
  std::set<NodeName> nodes;
  std::set<std::uint32_t> attempts, ranks, ranks_of_node, inside;
  for (const AttemptNo attempt : chosen) {
    attempts.insert(attempt.value);
    for (const LogSources::Part& part : sources.attempts.at(attempt)) {
      nodes.insert(part.node);
      for (std::uint32_t i = 0; i < part.training_count; ++i)
        inside.insert(part.training_first + i);
      for (std::uint32_t i = 0; i < part.count; ++i) {
        ranks.insert(part.first.value + i);
        if (part.node.str() == request.node()) ranks_of_node.insert(part.first.value + i);
      }
    }
  }
  const bool no_node = !request.node().empty() && !nodes.contains(NodeName(request.node()));
  const bool by_node = !request.node().empty() && !no_node;
  const std::set<std::uint32_t>& there = by_node ? ranks_of_node : ranks;
  std::set<std::uint32_t> no_ranks;
  for (const std::uint32_t rank : request.ranks()) {
    if (!there.contains(rank)) no_ranks.insert(rank);
  }
  if (!no_node && no_ranks.empty()) return std::nullopt;
  std::string missing;
  if (no_node) missing = fmt::format("no node '{}'", request.node());
  if (!no_ranks.empty())
    missing += fmt::format("{}no {}", no_node ? " and " : "",
                           counted("rank", no_ranks.size(), ranges_text(no_ranks)));
  const std::string in =
      counted("attempt", attempts.size(), ranges_text(attempts)) +
      (inside.empty() ? ""
                      : fmt::format(", and inside their scripts {} of the training",
                                    counted("rank", inside.size(), ranges_text(inside))));
  if (by_node)
    return fmt::format("{}{} on node '{}'; {} in {}", doing, missing, request.node(),
                       there_are("rank", there.size(), ranges_text(there)), in);
  return fmt::format("{}{}; {} on {} in {}", doing, missing,
                     there_are("rank", ranks.size(), ranges_text(ranks)),
                     counted("node", nodes.size(), names_text(nodes)), in);
}

}  // namespace muster::controller
