#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/engine/ascend/core_binding.h"
#include "common/engine/ascend/modelarts.h"
#include "common/engine/ascend/plog.h"
#include "common/engine/model/code_place.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/fetches.h"
#include "common/engine/model/rows.h"
#include "common/engine/model/start.h"

namespace muster::engine {
namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Adds the directories that muster must make before the node's processes start.
void add_dirs(v1::NodeLaunch& launch, const LaunchRequest& request, const LaunchPlan& plan,
              std::size_t node) {
  launch.add_make_dirs(request.out_dir);
  launch.add_make_dirs(request.save_dir);
  const std::string own = work_dir(request.out_dir, request.attempt) + "/";
  for (const RankPlan& rank : plan.ranks)
    if (rank.node == node && rank.cwd.starts_with(own)) launch.add_make_dirs(rank.cwd);
  for (const AuxiliaryPlan& auxiliary : plan.auxiliaries)
    if (auxiliary.node == node && auxiliary.cwd.starts_with(own))
      launch.add_make_dirs(auxiliary.cwd);
  for (const FilePlan& file : plan.files)
    if (file.node == node) launch.add_make_dirs(parent_of(file.path));
  for (const PatchPlan& file : plan.patched)
    if (file.node == node) launch.add_make_dirs(parent_of(file.path));
  for (const std::string& dir : modelarts_dirs(request, node)) launch.add_make_dirs(dir);
  if (launch.script().intercept())
    launch.add_make_dirs(rank_log_dir(request.out_dir, request.attempt));
}

void add_files(v1::NodeLaunch& launch, const LaunchPlan& plan, std::size_t node) {
  for (const FilePlan& file : plan.files) {
    if (file.node != node) continue;
    v1::LaunchFile& out = *launch.add_files();
    out.set_path(file.path);
    out.set_mode(file.mode);
    out.set_content(*file.content);
    out.set_sha256(file.sha256);
  }
}

void add_patched(v1::NodeLaunch& launch, const LaunchPlan& plan, std::size_t node) {
  for (const PatchPlan& file : plan.patched) {
    if (file.node != node) continue;
    v1::PatchedFile& out = *launch.add_patched();
    out.set_source(file.source);
    out.set_path(file.path);
    for (const auto& [at, value] : file.items) {
      v1::PatchItem& item = *out.add_items();
      item.set_at(at);
      item.set_value(value);
    }
    for (const auto& [name, value] : file.vars) (*out.mutable_vars())[name] = value;
  }
}

void add_needed(v1::NodeLaunch& launch, const LaunchPlan& plan, std::size_t node) {
  for (const NeedPlan& file : plan.needed) {
    if (file.node != node) continue;
    v1::NeededFile& out = *launch.add_needed();
    out.set_source(file.source);
    out.set_key(file.key);
    for (const RefusedValue& refused : file.refused) {
      v1::RefusedValue& value = *out.add_refused();
      value.set_at(refused.at);
      value.set_value(refused.value);
      value.set_because(refused.because);
    }
  }
}

// Vendors' scripts export variables of a single process (RANK_ID, DEVICE_ID). A shell may also have
// variables about the table or the cloud platform of another launch. torch_npu takes every
// RANK_TABLE_FILE for its own, and MindFormers takes every MA_JOB_DIR as a sign of a cloud. So only
// engine command gets everything that the setup leaves.
std::set<std::string_view> not_inherited(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  if (engine == nullptr || engine->identity.empty()) return {};
  std::set<std::string_view> names = {"RANK_TABLE", "ASCEND_DEVICE_ID"};
  names.insert(engine->identity.begin(), engine->identity.end());
  for (const Engine& other : engine_table()) {
    if (other.cloud.empty()) continue;
    names.insert(other.identity.begin(), other.identity.end());
    names.insert(other.cloud.begin(), other.cloud.end());
  }
  return names;
}

void add_setup(v1::NodeLaunch& launch, const LaunchRequest& request, std::size_t node) {
  const v1::JobSpec& spec = *request.spec;
  if (spec.runtime().setup().empty()) return;
  v1::Setup& setup = *launch.mutable_setup();
  *setup.mutable_commands() = spec.runtime().setup();
  *setup.mutable_timeout() = spec.runtime().setup_timeout();
  if (const auto names = not_inherited(spec); !names.empty())
    setup.add_commands(fmt::format("unset {} || true", fmt::join(names, " ")));
  setup.set_cwd(code_dir(spec, request.out_dir, node));
}

// code.at has no target: it is mounted at the same path as on the node, if the node has it. The
// image may contain the code instead.
void add_container(v1::NodeLaunch& launch, const LaunchRequest& request) {
  const v1::JobSpec& spec = *request.spec;
  if (spec.runtime().image().empty()) return;
  v1::Container& container = *launch.mutable_container();
  container.set_image(spec.runtime().image());
  container.set_memory_bytes(spec.runtime().limits().memory_bytes());
  container.set_millicpus(spec.runtime().limits().millicpus());
  for (const v1::MountSpec& mount : spec.runtime().mounts()) {
    v1::ContainerMount& out = *container.add_mounts();
    out.set_source(mount.source());
    out.set_target(mount.target());
    out.set_read_only(mount.read_only());
  }
  // No process writes to these mounts. If a path does not exist, the program that reads it fails.
  const auto add_read = [&container](const std::string& path) {
    if (path.empty()) return;
    v1::ContainerMount& out = *container.add_mounts();
    out.set_source(path);
    out.set_read_only(true);
  };
  for (const v1::InputSpec& input : spec.inputs()) add_read(input_path(request, input));
  // the agent mounts the targets of links
  if (request.resume_source.empty()) add_read(request.start_dir);
  std::string code = spec.code().at();
  while (code.ends_with('/')) code.pop_back();
  if (!code.empty()) container.add_mounts()->set_source(std::move(code));
}

void add_auxiliaries(v1::NodeLaunch& launch, const LaunchPlan& plan, std::size_t node) {
  for (const AuxiliaryPlan& auxiliary : plan.auxiliaries) {
    if (auxiliary.node != node) continue;
    v1::AuxiliaryProcess& out = *launch.add_auxiliaries();
    out.set_name(auxiliary.name);
    for (const std::string& word : auxiliary.argv) out.add_argv(word);
    out.set_cwd(auxiliary.cwd);
    for (const auto& [name, value] : auxiliary.env)
      if (value.secret.empty()) (*out.mutable_env())[name] = value.text;
  }
}

}  // namespace

v1::NodeLaunch node_launch(const LaunchRequest& request, const LaunchPlan& plan, std::size_t node) {
  const v1::JobSpec& spec = *request.spec;
  v1::NodeLaunch launch;
  launch.set_job_id(request.job_id);
  launch.set_attempt(request.attempt);
  launch.set_job_name(spec.name());
  if (!spec.runtime().user().empty() && spec.runtime().user() != "submitter")
    launch.set_user(spec.runtime().user());
  if (spec.launch().per() == v1::LAUNCH_PER_NODE)
    launch.mutable_script()->set_intercept(spec.launch().intercept());
  add_dirs(launch, request, plan, node);
  add_code_copy(launch, request, node);
  add_files(launch, plan, node);
  add_patched(launch, plan, node);
  add_needed(launch, plan, node);
  add_auxiliaries(launch, plan, node);
  add_setup(launch, request, node);
  add_container(launch, request);
  *launch.mutable_watching() = plan.watching;
  // With start.as: weights the links are made, too, if the step is known. Then the ranks load only
  // that step.
  if (!request.resume_source.empty()) {
    v1::ResumeLinks& resume = *launch.mutable_resume();
    resume.set_dir(request.resuming() ? request.resume_dir : request.start_dir);
    resume.set_source(request.resume_source);
    resume.set_step(request.resume_step);
    resume.set_shards(request.resume_shards);
    resume.set_layout(plan.watching.layout());
    resume.set_given(request.resume_from_start && request.attempt == 1);
    if (spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL &&
        spec.launch().per() != v1::LAUNCH_PER_ONCE) {
      resume.set_first_rank(request.nodes[node].first_rank.value);
      resume.set_ranks(request.nodes[node].rank_count);
    }
  }
  for (v1::Fetch& fetch : fetches(request, node)) *launch.add_fetches() = std::move(fetch);

  std::vector<const RankPlan*> ranks;
  for (const RankPlan& rank : plan.ranks)
    if (rank.node == node) ranks.push_back(&rank);
  if (ranks.empty()) return launch;
  launch.set_bind_cores(binds_cores(request, plan, node));

  // Variables that all of this node's ranks have alike are sent once.
  auto& common = *launch.mutable_env();
  for (const auto& [name, value] : ranks.front()->env) {
    if (!value.secret.empty()) {  // a whole value of the spec, alike for all ranks
      v1::SecretVariable& secret = *launch.add_secrets();
      secret.set_variable(name);
      secret.set_secret(value.secret);
      continue;
    }
    if (is_the_nodes(*ranks.front(), name)) continue;
    const bool alike = std::ranges::all_of(ranks, [&](const RankPlan* rank) {
      const auto found = rank->env.find(name);
      return found != rank->env.end() && found->second.text == value.text;
    });
    if (alike) common[name] = value.text;
  }
  for (const RankPlan* rank : ranks) {
    v1::RankProcess& process = *launch.add_ranks();
    process.set_rank(rank->rank);
    for (const std::string& word : rank->argv) process.add_argv(word);
    process.set_cwd(rank->cwd);
    for (const std::uint32_t device : rank->devices) process.add_devices(device);
    for (const auto& [name, value] : rank->env)
      if (value.secret.empty() && !common.contains(name) && !is_the_nodes(*rank, name))
        (*process.mutable_env())[name] = value.text;
    process.set_plog_dir(rank->plog_dir);
    process.set_success_file(rank->success_file);
  }
  return launch;
}

}  // namespace muster::engine
