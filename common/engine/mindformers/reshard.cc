// Another number of ranks, and one whole file, of MindFormers' checkpoints with a file a rank.
// Three stages, each with the code, the interpreter and the image of the job:
//
//   strategy    run_mindformer.py --only_save_strategy True at the new size writes every rank's
//               strategy file. Left out if the new size is one rank: it has no strategy
//   transform   mindformers/tools/transform_ckpt.py, one process on one node. It turns the old
//               strategy, the new strategy and the old shards into the new shards, and renames
//               them so that they are a checkpoint of the same step
//   train       resumes from those shards
//
// Source: mindspore-lab/mindformers mindformers/tools/transform_ckpt.py.
#include <fmt/format.h>

#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/resume_plan.h"

namespace muster::engine {
namespace {

// Arguments: $1 the interpreter, $2 the directory of the old strategy files, $3 the directory of
// the attempts that saved the new ones (an empty $2 or $3 means: the model is whole), $4 the number
// of ranks, $5 the result, $6 "file" for one whole file instead of a directory. The result appears
// either whole or not at all.
//
// The tool writes into the strategies' directories, takes every file in a rank's directory as the
// rank's, and finds its package from the code's root.
constexpr std::string_view kTransform = R"sh(
python=$1 source=$2 target=$3 ranks=$4 result=$5 kind=$6
stop() { echo "error: cutting the checkpoint again: $*" >&2; exit 1; }
strategies() {
  mkdir "$2" || exit 1
  for file in "$1"/ckpt_strategy_rank_*.ckpt; do
    [ -e "$file" ] || stop "there is no strategy file in '$1', where ranks write them at their start (parallel.strategy_ckpt_save_file)"
    ln -s "$file" "$2/" || exit 1
  done
}
made=$MUSTER_OUT/making
if [ -e "$result" ]; then
  [ -e "$made" ] && exit 0
  stop "'$result' is there already; name another place"
fi
tool=mindformers/tools/transform_ckpt.py
[ -f "$tool" ] || stop "there is no '$tool' in '$PWD', the job's code"
[ -n "$MUSTER_RESUME_DIR" ] || stop "there is no checkpoint to begin with"
work=$result.attempt-$MUSTER_ATTEMPT
rm -rf "$result".attempt-*
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/source" "$work/cut" "$work/done" || exit 1
name=
for dir in "$MUSTER_RESUME_DIR"/rank_*; do
  own=$work/source/${dir##*/}
  mkdir "$own" || exit 1
  for file in "$dir"/*.ckpt; do
    [ -e "$file" ] || stop "'$dir' has no .ckpt file, and $tool takes no other"
    ln -s "$file" "$own/" || exit 1
    if [ "${dir##*/}" = rank_0 ]; then name=${file##*/}; fi
  done
done
set -- --src_ckpt_dir "$work/source" --dst_ckpt_dir "$work/cut" --prefix checkpoint_
if [ -n "$source" ]; then
  strategies "$source" "$work/source_strategy"
  set -- "$@" --src_ckpt_strategy "$work/source_strategy"
fi
if [ -n "$target" ]; then
  newest=0
  for dir in "$target"/attempt-*/strategy; do
    number=${dir%/strategy}
    number=${number##*/attempt-}
    [ "$number" -gt "$newest" ] 2>/dev/null && newest=$number
  done
  strategies "$target/attempt-$newest/strategy" "$work/target_strategy"
  set -- "$@" --dst_ckpt_strategy "$work/target_strategy"
fi
PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} "$python" -u "$tool" "$@" || stop "$tool ended with status $?"
rank=0
while [ "$rank" -lt "$ranks" ]; do
  file=$work/cut/rank_$rank/checkpoint_$rank.ckpt
  own=$work/done/rank_$rank
  [ -f "$file" ] || stop "$tool has not written '$file'"
  mkdir "$own" && mv "$file" "$own/${name%_rank_0-*}_rank_$rank-${name##*-}" || exit 1
  rank=$((rank + 1))
done
: > "$made" || exit 1
if [ "$kind" = file ]; then
  mv "$work/done/rank_0/"*.ckpt "$result" || exit 1
else
  mv "$work/done" "$result" || exit 1
fi
)sh";

constexpr std::string_view kLayout = "mindformers";
constexpr const char* kResult = "resharded";

std::string python_of(const v1::JobSpec& spec) {
  const std::string& python = spec.runtime().python();
  return python.empty() || python == "auto" ? std::string(kPythonAuto) : python;
}

// --- the stages ----------------------------------------------------------------------------------

v1::JobSpec strategy_of(v1::JobSpec spec) {
  v1::LaunchSpec& launch = *spec.mutable_launch();
  launch.set_mode(v1::LAUNCH_MODE_STRATEGY);
  launch.clear_lockstep();
  spec.mutable_observe()->clear_profile();
  spec.mutable_observe()->clear_dump();
  spec.clear_start();
  spec.clear_resume();
  spec.clear_success();
  return spec;
}

struct Cut {
  std::string source;  // directory of the old strategy; empty: the old job had one rank
  std::string target;  // below this the strategy stage saves, a template; empty: one rank
  std::uint64_t ranks = 1;
  std::string result;  // a template
  bool file = false;
};

v1::JobSpec transform_of(const v1::JobSpec& like, const ResumeAsk& ask, const Cut& cut) {
  v1::JobSpec spec;
  spec.set_engine("command");
  *spec.mutable_labels() = like.labels();
  *spec.mutable_code() = like.code();
  *spec.mutable_runtime() = like.runtime();
  const std::string runtime = like.runtime().ShortDebugString();
  for (const v1::InputSpec& input : like.inputs())
    if (runtime.contains(fmt::format("${{inputs.{}}}", input.name()))) *spec.add_inputs() = input;
  *spec.mutable_recovery() = like.recovery();
  v1::LaunchSpec& launch = *spec.mutable_launch();
  launch.set_per(v1::LAUNCH_PER_ONCE);
  const std::string script = literal(kTransform), ranks = std::to_string(cut.ranks);
  for (const std::string& word :
       {std::string("/bin/sh"), std::string("-c"), script, std::string("transform_ckpt"),
        literal(python_of(like)), literal(cut.source), cut.target, ranks,
        cut.result.starts_with('/') || cut.result.starts_with("${") ? cut.result
                                                                    : "${out}/" + cut.result,
        std::string(cut.file ? "file" : "directory")})
    launch.add_run(word);
  v1::ResourceSpec& resources = *spec.mutable_resources();
  resources.set_nodes(1);
  resources.set_devices(1);
  resources.set_type(ask.transform_type.empty() ? like.resources().type() : ask.transform_type);
  if (ask.transform_type.empty()) {
    *resources.mutable_hosts() = like.resources().hosts();
    *resources.mutable_select() = like.resources().select();
  }
  spec.mutable_checkpoint()->set_layout(std::string(kLayout));
  if (on_own_disks(like)) spec.mutable_checkpoint()->set_storage(v1::CHECKPOINT_STORAGE_LOCAL);
  spec.mutable_observe()->set_grammar("none");
  spec.mutable_success()->set_file(cut.result);
  start_from(spec, "job:" + ask.job_id, ask.checkpoint.step);
  return spec;
}

// What the transform reads and other nodes have on their own disks.
std::vector<v1::JobFetches> fetches_of(const v1::JobSpec& transform, const Cut& cut) {
  if (!on_own_disks(transform)) return {};
  v1::JobFetches wanted;
  wanted.set_job_name(transform.name());
  if (!cut.source.empty()) wanted.add_fetches()->set_dir(literal(cut.source));
  if (!cut.target.empty()) {
    v1::FetchSpec& strategy = *wanted.add_fetches();
    strategy.set_stage("strategy");
    strategy.set_dir(cut.target);
    strategy.set_below("strategy");
  }
  return {wanted};
}

std::string old_strategy(const ResumeAsk& ask) {
  return ranks_asked(*ask.before) == 1 ? "" : ask.checkpoint.save_dir + "/strategy";
}

void make_stage(v1::JobSpec& spec, const std::string& chain, const char* stage,
                const char* behind) {
  spec.set_name(fmt::format("{}.{}", chain, stage));
  spec.mutable_stage()->set_chain_name(chain);
  spec.mutable_stage()->set_name(stage);
  spec.clear_schedule();
  if (behind != nullptr) spec.mutable_schedule()->add_after(fmt::format("stage:{}", behind));
}

ResumeJobs chain_of(const ResumeAsk& ask) {
  v1::JobSpec train = training_of(ask);
  const std::uint64_t ranks = ranks_asked(train);
  // If the checkpoints have their own shared storage, the stages also exchange their files there.
  // The nodes' own disks are no such storage.
  const bool own_disks = on_own_disks(train),
             apart = !own_disks && train.checkpoint().dir().starts_with('/');
  const std::string dir =
      own_disks && train.checkpoint().dir().starts_with('/') ? "" : train.checkpoint().dir();
  Cut cut{.source = old_strategy(ask),
          .target = {},
          .ranks = ranks,
          .result = apart ? fmt::format("{}.{}", dir, kResult) : kResult};
  ResumeJobs planned;
  std::vector<v1::JobSpec>& stages = planned.jobs;
  if (ranks > 1) {
    v1::JobSpec strategy = strategy_of(train);
    if (apart) strategy.mutable_checkpoint()->set_dir(dir + ".strategy");
    if (own_disks) strategy.mutable_checkpoint()->set_dir(dir);
    cut.target = apart                       ? dir + ".strategy"
                 : dir.starts_with("${out}") ? "${stages.strategy.out}" + dir.substr(6)
                                             : "${stages.strategy.out}/checkpoints";
    make_stage(strategy, ask.name, "strategy", nullptr);
    stages.push_back(std::move(strategy));
  }
  v1::JobSpec transform = transform_of(train, ask, cut);
  make_stage(transform, ask.name, "transform", ranks > 1 ? "strategy" : nullptr);
  planned.fetches = fetches_of(transform, cut);
  stages.push_back(std::move(transform));
  start_from(train, apart ? cut.result : fmt::format("stage:transform/{}", kResult),
             ask.checkpoint.step);
  make_stage(train, ask.name, "train", "transform");
  stages.push_back(std::move(train));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].clear_output_dir();  // otherwise all stages would share it
    stages[i].mutable_stage()->set_number(static_cast<std::uint32_t>(i + 1));
    stages[i].mutable_stage()->set_count(static_cast<std::uint32_t>(stages.size()));
  }
  return planned;
}

Result<void> check_chain(const ResumeAsk& ask) {
  const auto refuse = [&](std::string_view why) {
    return fail(
        resume_error(ask, "resuming",
                     fmt::format("its checkpoint has to be cut again for the new size, and {}; "
                                 "write the stages yourself: docs/engines/mindformers.md, "
                                 "\"Another size\"",
                                 why)));
  };
  if (ask.after.launch().per() == v1::LAUNCH_PER_NODE)
    return refuse(
        "with launch.per: node only the script knows how the strategy of the new size is made");
  if (!mindformers_sets_save_dir(ask.after))
    return refuse(
        "the script is not run_mindformer.py, whose --only_save_strategy makes the strategy of the "
        "new size");
  return {};
}

}  // namespace

bool mindformers_is_cut_by_rank(const ResumeAsk& ask) {
  const v1::JobSpec& spec = *ask.before;
  const std::string& layout = spec.checkpoint().layout();
  if (!layout.empty() && layout != kLayout) return false;
  // With use_legacy_format: False MindFormers itself cuts the checkpoint when it loads it.
  const std::string_view path = ask.checkpoint.path;
  return !path.substr(path.rfind('/') + 1).starts_with("iter");
}

Result<ResumeJobs> mindformers_cut_again(const ResumeAsk& ask) {
  if (auto sound = check_chain(ask); !sound) return fail(std::move(sound.error()));
  return chain_of(ask);
}

Result<ResumeJobs> mindformers_make_whole(const ResumeAsk& ask, const std::string& file) {
  v1::JobSpec like = *ask.before;
  leave_chain(like, *ask.resolved);
  const Cut cut{.source = old_strategy(ask),
                .target = {},
                .ranks = 1,
                .result = file.starts_with('/') ? literal(file) : file,
                .file = true};
  v1::JobSpec spec = transform_of(like, ask, cut);
  spec.set_name(ask.name);
  auto fetches = fetches_of(spec, cut);
  return ResumeJobs{.jobs = {std::move(spec)}, .fetches = std::move(fetches)};
}

Result<bool> mindformers_is_whole(const v1::JobSpec& spec, const SavedCheckpoint&) {
  return ranks_asked(spec) == 1;
}

}  // namespace muster::engine
