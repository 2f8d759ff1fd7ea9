// The parts that the engines share: the functions of each engine's row and their values. The
// planner in plan.cc owns each Launching and gives it to one row. Pure.
//
// Each engine has one file (torch.cc, megatron.cc, ...); engine_table.cc lists the engines.
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
std::string_view device_type(const LaunchRequest& request, const NodeSlot& node);

// How many ranks a complete spec requests.
std::uint64_t ranks_asked(const v1::JobSpec& spec);

void launch_torch(Launching& launching);
void check_torch(const v1::JobSpec& spec, Problems& problems);
std::span<const std::string_view> torch_identity();
// Refuses a launcher of ranks in launch.run: it would start a whole job on each device.
void check_no_launcher_inside(const v1::JobSpec& spec, Problems& problems);
// Sets torchrun's worker variables for every rank.
void put_torchrun(Launching& launching, const char* source);

void launch_megatron(Launching& launching);
void check_megatron(const v1::JobSpec& spec, Problems& problems);
bool megatron_sets_save_dir(const v1::JobSpec& spec);
bool megatron_loads_start(const v1::JobSpec& spec);
// The part of the launch that MindSpeed-MM and Megatron-LM share.
void launch_on_megatron(Launching& launching, const char* source);

void launch_mindspeed_mm(Launching& launching);
void check_mindspeed_mm(const v1::JobSpec& spec, Problems& problems);

void launch_mindformers(Launching& launching);
void check_mindformers(const v1::JobSpec& spec, Problems& problems);
bool mindformers_sets_save_dir(const v1::JobSpec& spec);
bool mindformers_loads_start(const v1::JobSpec& spec);
std::string_view mindformers_needs(const v1::JobSpec& spec);
std::span<const std::string_view> mindformers_identity();
std::span<const std::string_view> mindformers_cloud();

void launch_command(Launching& launching);

// launch.per: node, for every engine: in node_script.cc.
void launch_node_script(Launching& launching, const Engine& engine);
void check_node_script(const v1::JobSpec& spec, Problems& problems);
// number of training processes: those that the scripts start, otherwise the ranks
std::size_t training_world(const LaunchRequest& request);
ArgumentEdits intercepted_megatron(const LaunchRequest& request);
ArgumentEdits intercepted_mindformers(const LaunchRequest& request);

}  // namespace muster::engine
