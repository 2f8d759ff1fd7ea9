#include "controller/api/show_launch.h"

#include <fmt/format.h>

#include <string_view>

namespace muster::controller {
namespace {

void fill(google::protobuf::RepeatedPtrField<v1::EnvValue>& shown,
          const std::map<std::string, engine::Value>& env) {
  for (const auto& [name, value] : env) {
    v1::EnvValue& one = *shown.Add();
    one.set_name(name);
    one.set_value(value.text);
    one.set_source(value.source);
    one.set_secret(value.secret);
  }
}

}  // namespace

void fill(v1::RankLaunch& shown, const engine::LaunchRequest& request,
          const engine::LaunchPlan& plan, const engine::RankPlan& rank) {
  shown.set_rank(rank.rank);
  shown.set_node(request.nodes[rank.node].node.str());
  for (const std::string& argument : rank.argv) shown.add_argv(argument);
  for (std::size_t i = 0; i < rank.argv.size() && i < plan.argv_sources.size(); ++i)
    shown.add_argv_sources(plan.argv_sources[i]);
  shown.set_cwd(rank.cwd);
  fill(*shown.mutable_env(), rank.env);
}

void fill_files(google::protobuf::RepeatedPtrField<v1::LaunchedFile>& shown,
                const engine::LaunchRequest& request, const engine::LaunchPlan& plan,
                const std::set<std::size_t>& nodes) {
  std::set<std::string_view> contents;  // by hash
  for (const engine::FilePlan& file : plan.files) {
    if (!nodes.contains(file.node)) continue;
    v1::LaunchedFile& one = *shown.Add();
    one.set_node(request.nodes[file.node].node.str());
    one.set_path(file.path);
    one.set_mode(file.mode);
    one.set_sha256(file.sha256);
    one.set_size(file.content->size());
    one.set_source(file.source);
    if (file.content->size() <= kShownContentMax && contents.insert(file.sha256).second)
      one.set_content(*file.content);
  }
  // These files are made on the node, where their source is: neither bytes nor hash are known here.
  for (const engine::PatchPlan& file : plan.patched) {
    if (!nodes.contains(file.node)) continue;
    v1::LaunchedFile& one = *shown.Add();
    one.set_node(request.nodes[file.node].node.str());
    one.set_path(file.path);
    one.set_source(fmt::format("{} of '{}'", file.key, file.source));
    // The files of other nodes are the same, except for what names the node.
    if (file.node != *nodes.begin()) continue;
    for (const auto& [at, value] : file.items) {
      v1::FileChange& change = *one.add_changes();
      change.set_at(at);
      change.set_value(value);
    }
    for (const auto& [name, value] : file.vars) (*one.mutable_vars())[name] = value;
  }
}

void fill_auxiliaries(google::protobuf::RepeatedPtrField<v1::LaunchedAuxiliary>& shown,
                      const engine::LaunchRequest& request, const engine::LaunchPlan& plan,
                      const std::set<std::size_t>& nodes) {
  for (const engine::AuxiliaryPlan& auxiliary : plan.auxiliaries) {
    if (!nodes.contains(auxiliary.node)) continue;
    v1::LaunchedAuxiliary& one = *shown.Add();
    one.set_name(auxiliary.name);
    one.set_node(request.nodes[auxiliary.node].node.str());
    for (const std::string& argument : auxiliary.argv) one.add_argv(argument);
    one.set_cwd(auxiliary.cwd);
    fill(*one.mutable_env(), auxiliary.env);
  }
}

}  // namespace muster::controller
