#include "common/engine/model/observing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/engine/model/arguments.h"

namespace muster::engine {
namespace {

constexpr const char* kProfile = "observe.profile";
constexpr const char* kDump = "observe.dump";

std::string option_key(const CommandLine& command, std::string_view name) {
  const auto option = find_option(command, name);
  return option ? command[option->word].key : "launch.args";
}

void check_steps(const v1::JobSpec& spec, Problems& problems) {
  const v1::ProfileSpec& profile = spec.observe().profile();
  const std::uint32_t start = profile.start(), stop = profile.stop();
  if ((start == 0) != (stop == 0))
    problems.push_back(
        {.key = start == 0 ? "observe.profile.start" : "observe.profile.stop",
         .message = fmt::format(
             "is missing (1..4294967295): {} alone would go with the engine's own default",
             start == 0 ? "stop" : "start")});
  else if (stop < start)
    problems.push_back({.key = "observe.profile.stop",
                        .message = fmt::format("{} is before start, {}", stop, start)});
  else if (stop == start && start != 0 && !find_engine(spec.engine())->profiles_one_step)
    problems.push_back(
        {.key = "observe.profile.stop",
         .message = fmt::format(
             "{} is start: {} records what is behind start, up to stop; give at least {}", stop,
             spec.engine(), start + 1)});
  std::set<std::uint32_t> seen;
  for (int i = 0; i < profile.ranks_size(); ++i) {
    const std::uint32_t rank = profile.ranks(i);
    const std::string key = fmt::format("observe.profile.ranks[{}]", i);
    if (rank >= ranks_asked(spec))
      return problems.push_back({.key = key,
                                 .message = fmt::format("there is no rank {}: the job has 0..{}",
                                                        rank, ranks_asked(spec) - 1)});
    if (!seen.insert(rank).second)
      return problems.push_back(
          {.key = key, .message = fmt::format("rank {} is there twice", rank)});
  }
}

void check_profile(const v1::JobSpec& spec, const Engine& engine, Problems& problems) {
  const auto refuse = [&](std::string message) {
    problems.push_back({.key = kProfile, .message = std::move(message)});
  };
  if (engine.check_profile == nullptr) {
    std::string able;
    for (const Engine& one : engine_table())
      if (one.check_profile != nullptr)
        able += fmt::format("{}{}", able.empty() ? "" : ", ", one.name);
    if (const std::size_t last = able.rfind(", "); last != std::string::npos)
      able.replace(last, 2, " and ");
    return refuse(
        fmt::format("is for engines {}, which have options for it; with {} the program "
                    "itself has to record one: leave it out",
                    able, engine.name));
  }
  if (spec.launch().per() == v1::LAUNCH_PER_NODE)
    return refuse(
        "is for ranks that muster starts, and with launch.per: node the script does; put the "
        "engine's own options into the script, and leave it out");
  check_steps(spec, problems);
  engine.check_profile(spec, problems);
}

}  // namespace

void add_profile_option(CommandLine& command, std::string_view name, std::string value) {
  command.push_back({std::string(name), kProfile});
  command.push_back({std::move(value), kProfile});
}

void check_profile_given_once(const CommandLine& command, std::span<const std::string_view> options,
                              Problems& problems) {
  for (const std::string_view name : options)
    if (has_option(command, name))
      return problems.push_back(
          {.key = option_key(command, name),
           .message = fmt::format(
               "{}: observe.profile says already what is profiled; leave one of the two out",
               name)});
}

void put_profile(Launching& launching) {
  const v1::JobSpec& spec = *launching.request.spec;
  const Engine* engine = find_engine(spec.engine());
  if (spec.observe().has_profile() && engine->put_profile != nullptr)
    engine->put_profile(launching);
}

std::optional<v1::ConfigPatch> profile_patch(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  if (!spec.observe().has_profile() || engine == nullptr || engine->profile_patch == nullptr)
    return std::nullopt;
  return engine->profile_patch(spec);
}

void put_dump(Launching& launching) {
  const v1::JobSpec& spec = *launching.request.spec;
  const Engine* engine = find_engine(spec.engine());
  if (spec.observe().has_dump() && engine->put_dump != nullptr) engine->put_dump(launching);
}

void check_observing(const v1::JobSpec& spec, Problems& problems) {
  const Engine* engine = find_engine(spec.engine());
  if (engine == nullptr) return;
  if (spec.observe().has_profile()) check_profile(spec, *engine, problems);
  if (!spec.observe().has_dump()) return;
  if (engine->check_dump != nullptr) return engine->check_dump(spec, problems);
  problems.push_back(
      {.key = kDump,
       .message = fmt::format("is MindSpore's, for engine mindformers; {} has none: leave it out",
                              engine->name)});
}

}  // namespace muster::engine
