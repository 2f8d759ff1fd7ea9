// The parts that the engines share: a plan in the making, and its values. The planner in plan.cc
// owns each Launching and gives it to one row. Pure.
//
// Each engine has one folder (../torch, ../megatron, ...); engine_table.cc has its row.
#pragma once

#include <map>
#include <string>

#include "common/engine/model/engine.h"

namespace muster::engine {

using Environment = std::map<std::string, Value>;
using Problems = std::vector<KeyedProblem>;

// Sets a value that belongs to muster or to the engine alone.
inline void put(Environment& env, const char* name, std::string text, const char* source) {
  env.insert_or_assign(name, Value{std::move(text), source});
}
// Sets a value unless the spec has set it.
inline void put_default(Environment& env, const char* name, std::string text, const char* source) {
  env.try_emplace(name, Value{std::move(text), source});
}

// A word of a command line, before its templates are expanded.
struct Word {
  std::string text;
  std::string key;  // source: a key of the spec, or "engine NAME"
};
using CommandLine = std::vector<Word>;

struct AuxiliaryDraft {
  AuxiliaryPlan plan;  // argv and cwd are filled in from the fields below
  CommandLine command;
  std::string cwd;  // with templates
};

// A plan that is being made, as an engine's row sees it.
struct Launching {
  const LaunchRequest& request;
  LaunchPlan& plan;      // ranks with the spec's own environment, without argv and cwd
  CommandLine& command;  // of every rank
  std::string& cwd;      // of every rank, with templates
  std::vector<AuxiliaryDraft>& auxiliaries;
  Problems& problems;
};

// Escapes a text that contains no template, so that it expands to itself.
std::string literal(std::string_view text);
// A path of the spec, with its templates. A relative path is below the code tree (code_place.cc).
std::string below_code(const v1::JobSpec& spec, std::string_view path);

// resources.type, or the node's own device type if resources.type is auto.
std::string_view device_type(const LaunchRequest& request, const PlacedNode& node);

// How many ranks a complete spec requests.
std::uint64_t ranks_asked(const v1::JobSpec& spec);

// launch.per: node, for every engine: in node_script.cc.
void launch_node_script(Launching& launching, const Engine& engine);
void check_node_script(const v1::JobSpec& spec, Problems& problems);
// number of training processes: those that the scripts start, otherwise the ranks
std::size_t training_world(const LaunchRequest& request);
// Whether the ranks of this spec find each other by a rank table, where there are several.
bool starts_by_table(const v1::JobSpec& spec);
// Refuses a launcher of ranks in launch.run: it would start a whole job on each device.
void check_no_launcher_inside(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
