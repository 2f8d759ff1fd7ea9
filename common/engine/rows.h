// The engines' own parts, one file each (torch.cc, megatron.cc ...); engine_table.cc lists them.
#pragma once

#include <map>
#include <string>

#include "common/engine/engine.h"

namespace muster::engine {

using Environment = std::map<std::string, Value>;
using Problems = std::vector<KeyedProblem>;

// A value that is muster's or the engine's alone.
inline void put(Environment& env, const char* name, std::string text, const char* source) {
  env.insert_or_assign(name, Value{std::move(text), source});
}
// A value that the spec may have set otherwise.
inline void put_default(Environment& env, const char* name, std::string text, const char* source) {
  env.try_emplace(name, Value{std::move(text), source});
}

// A word of a command line, still with its templates.
struct Word {
  std::string text;
  std::string key;  // of the spec, where it comes from; or "engine NAME"
};
using CommandLine = std::vector<Word>;

struct AuxiliaryDraft {
  AuxiliaryPlan plan;  // argv and cwd are filled in from those below
  CommandLine command;
  std::string cwd;  // with templates
};

// A plan in the making, as an engine's row sees it.
struct Launching {
  const LaunchRequest& request;
  LaunchPlan& plan;      // ranks with the spec's own environment, without argv and cwd
  CommandLine& command;  // of every rank
  std::string& cwd;      // of every rank, with templates
  std::vector<AuxiliaryDraft>& auxiliaries;
  Problems& problems;
};

// A text that is no template, as one.
std::string literal(std::string_view text);
// A path of the spec, still with its templates: below the code tree unless absolute
// (code_place.cc).
std::string below_code(const v1::JobSpec& spec, std::string_view path);

// resources.type, or what the node has where that is auto.
std::string_view device_type(const LaunchRequest& request, const NodeSlot& node);

// How many ranks a complete spec asks for.
std::uint64_t ranks_asked(const v1::JobSpec& spec);

void launch_torch(Launching& launching);
void check_torch(const v1::JobSpec& spec, Problems& problems);
std::span<const std::string_view> torch_identity();
// A launcher of ranks in launch.run would start a whole job once a device.
void check_no_launcher_inside(const v1::JobSpec& spec, Problems& problems);
// torchrun's worker variables for every rank.
void put_torchrun(Launching& launching, const char* source);

void launch_megatron(Launching& launching);
void check_megatron(const v1::JobSpec& spec, Problems& problems);
bool megatron_sets_save_dir(const v1::JobSpec& spec);
bool megatron_loads_start(const v1::JobSpec& spec);
// What MindSpeed-MM has in common with Megatron-LM.
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

// launch.per: node, for every engine: node_script.cc.
void launch_node_script(Launching& launching, const Engine& engine);
void check_node_script(const v1::JobSpec& spec, Problems& problems);
// processes of the training, which the scripts start; else the ranks
std::size_t training_world(const LaunchRequest& request);
ArgumentEdits intercepted_megatron(const LaunchRequest& request);
ArgumentEdits intercepted_mindformers(const LaunchRequest& request);

}  // namespace muster::engine
