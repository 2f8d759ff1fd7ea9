// Applies --set and --env to a complete spec; `muster resume` makes a new job from the result.
#include <array>
#include <set>

#include "common/spec/parse.h"
#include "common/spec/read_spec.h"
#include "common/spec/yaml_tree.h"

namespace muster::spec {
namespace {

// Collects every key that the tree names, with the keys of sections.
void collect(const Node& node, const std::string& prefix, std::set<std::string>& keys) {
  if (node.kind != Node::Kind::Map) return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string key = prefix.empty() ? node.keys[i].text : prefix + "." + node.keys[i].text;
    keys.insert(key);
    collect(node.items[i], key, keys);
  }
}

// These fields are cleared before reading, because their readers append to them, or do not write
// the default. So a list is replaced and a map gets entries.
struct Forget {
  std::string_view key;
  void (*act)(v1::JobSpec&);
};
constexpr auto kForget = std::to_array<Forget>({
    {"code.from", [](v1::JobSpec& spec) { spec.mutable_code()->clear_at(); }},
    {"code.at", [](v1::JobSpec& spec) { spec.mutable_code()->clear_at(); }},
    {"code.patches", [](v1::JobSpec& spec) { spec.mutable_code()->clear_patches(); }},
    {"runtime.image", [](v1::JobSpec& spec) { spec.mutable_runtime()->clear_image(); }},
    {"runtime.mounts", [](v1::JobSpec& spec) { spec.mutable_runtime()->clear_mounts(); }},
    {"runtime.setup",
     [](v1::JobSpec& spec) {
       spec.mutable_runtime()->clear_setup();
       spec.mutable_runtime()->clear_setup_timeout();
     }},
    {"launch.run", [](v1::JobSpec& spec) { spec.mutable_launch()->clear_run(); }},
    {"launch.args", [](v1::JobSpec& spec) { spec.mutable_launch()->clear_args(); }},
    {"launch.config", [](v1::JobSpec& spec) { spec.mutable_launch()->clear_config(); }},
    {"launch.lockstep", [](v1::JobSpec& spec) { spec.mutable_launch()->clear_lockstep(); }},
    {"resources.devices",
     [](v1::JobSpec& spec) {
       spec.mutable_resources()->clear_devices();
       spec.mutable_resources()->clear_device_ids();
     }},
    {"resources.hosts", [](v1::JobSpec& spec) { spec.mutable_resources()->clear_hosts(); }},
    {"resources.rank_table",
     [](v1::JobSpec& spec) { spec.mutable_resources()->clear_rank_table(); }},
    {"network.master_port", [](v1::JobSpec& spec) { spec.mutable_network()->clear_master_port(); }},
    {"inputs", [](v1::JobSpec& spec) { spec.clear_inputs(); }},
    {"checkpoint.dir", [](v1::JobSpec& spec) { spec.mutable_checkpoint()->clear_dir(); }},
    {"checkpoint.storage", [](v1::JobSpec& spec) { spec.mutable_checkpoint()->clear_storage(); }},
    {"resume", [](v1::JobSpec& spec) { spec.mutable_resume()->clear_enabled(); }},
    {"resume.args", [](v1::JobSpec& spec) { spec.mutable_resume()->clear_args(); }},
    {"resume.drop", [](v1::JobSpec& spec) { spec.mutable_resume()->clear_drop(); }},
    {"observe.plog", [](v1::JobSpec& spec) { spec.mutable_observe()->clear_plog(); }},
    {"observe.progress",
     [](v1::JobSpec& spec) {
       v1::ObserveSpec& observe = *spec.mutable_observe();
       observe.clear_grammar();
       observe.clear_step();
       observe.clear_loss();
       observe.clear_total();
     }},
    {"success", [](v1::JobSpec& spec) { spec.clear_success(); }},
});

// If a file had changes before, the new ones come after the old ones.
void join_patches(google::protobuf::RepeatedPtrField<v1::ConfigPatch>& files) {
  for (int i = 0; i < files.size(); ++i) {
    for (int j = i + 1; j < files.size();) {
      if (files[j].file() != files[i].file()) {
        ++j;
        continue;
      }
      files[i].mutable_changes()->MergeFrom(files[j].changes());
      files.DeleteSubrange(j, 1);
    }
  }
}

}  // namespace

std::vector<Problem> set_over(v1::JobSpec& spec, const ParseOptions& options) {
  Node root{.kind = Node::Kind::Map};
  std::vector<Problem> problems;
  apply_overrides(root, options, problems);
  std::set<std::string> keys;
  collect(root, "", keys);
  for (const Forget& forget : kForget)
    if (keys.contains(std::string(forget.key))) forget.act(spec);
  SpecReader reader(options, spec);
  reader.read(root);
  join_patches(*spec.mutable_launch()->mutable_patch());
  join_patches(*spec.mutable_resume()->mutable_patch());
  for (Problem& problem : complete(spec))
    if (!reader.spoiled(problem.key)) problems.push_back(std::move(problem));
  for (Problem& problem : reader.problems()) {
    problem.line = problem.column = 0;  // it is in no file
    problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace muster::spec
