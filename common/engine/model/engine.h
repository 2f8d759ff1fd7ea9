// Training engines: this header turns a spec and a placement into command lines, environments and
// files. Pure.
//
// The grammar of log lines is in grammar.h, the layout of checkpoints in layout.h. Each engine has
// one folder, whose files state what it does and the sources of its formats, and one row in
// engine_table().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/compat/arguments/edits.h"
#include "common/engine/model/launch_signs.h"
#include "common/engine/model/placement.h"
#include "muster/v1/agent_service.pb.h"
#include "muster/v1/spec.pb.h"

namespace muster::ranktable {
struct TableFile;
}

namespace muster::engine {

struct RankRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// Everything that a launch depends on. The same request always gives the same plan.
struct LaunchRequest {
  const v1::JobSpec* spec = nullptr;  // defaults are filled in
  // What the controller worked out from it; nullptr: nothing.
  const v1::ResolvedSpec* resolved = nullptr;
  std::string job_id;
  std::uint32_t attempt = 1;
  std::vector<PlacedNode> nodes;  // in rank order
  std::uint16_t master_port = 0;
  std::string out_dir;     // ${out}
  std::string save_dir;    // ${save.dir}: this attempt's own
  std::string resume_dir;  // ${resume.dir}; empty at a first start
  std::int64_t resume_step = -1;
  std::uint32_t resume_shards = 0;  // shards when it was found whole; 0: not known
  // save directory of the attempt that wrote the checkpoint: ResumeLinks.source
  std::string resume_source;
  bool resume_from_start = false;  // spec.start gave it: no attempt of this job wrote it
  // checkpoint.storage: local: which node has which files below resume_source
  std::vector<ShardHolder> resume_holders;
  std::map<std::string, OwnedShards> stage_shards;  // and what stages have saved
  // launch.per: node: what its script may name with --load; newest first for each directory
  std::vector<SavedBefore> saved;
  // ${start.dir}: what spec.start gives as weights; empty: nothing. For a checkpoint it is the
  // directory of links; otherwise it is the directory that the spec names.
  std::string start_dir;
  // Plans only these ranks and rank 0. Rank 0 gives the values that a plan states once for all
  // ranks. Each rank gets the same as in the whole plan.
  std::optional<RankRange> only;
  // The rank table that an earlier plan of the same attempt made (LaunchPlan::table). It saves
  // making the table again in each node's plan. Empty: the table is made anew.
  std::shared_ptr<const ranktable::TableFile> table;
  // The nodes are not from a placement. What they lack for a rank table is invented and not
  // refused.
  bool imagined = false;
  // Values of `resolved` (paths of inputs, directories of stages) may be missing. The planner then
  // invents a value of the greatest possible length.
  bool unresolved = false;

  // An attempt that resumes from a checkpoint: it gets resume.args and resume.env.
  [[nodiscard]] bool resuming() const { return !resume_dir.empty() && resume_step >= 0; }
  [[nodiscard]] std::size_t world_size() const;
};

struct Value {
  std::string text;
  std::string source;  // "runtime.env", "resume.env", "engine torch", "muster", ...
  // The value is this secret, which only the worker knows, and `text` shows its name (secret.h).
  // Empty: it is `text`.
  std::string secret = {};
};

struct RankPlan {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::size_t node = 0;  // index in LaunchRequest::nodes
  // argv[0] may be a bare name: the node resolves it on the PATH of the rank's environment
  std::vector<std::string> argv;
  std::string cwd;
  std::map<std::string, Value> env;  // the whole environment of this rank
  std::vector<std::uint32_t> devices;
  // directory of its engine's process log, below the node's run directory (plog.h); empty: the
  // engine or the job chooses the directory
  std::string plog_dir;
  std::string success_file;  // success.rank_file of this rank, absolute; empty: none
};

// A file that must be on a node, whole, before the node's ranks start.
struct FilePlan {
  std::size_t node = 0;
  std::string path;  // absolute
  std::uint32_t mode = 0644;
  std::shared_ptr<const std::string> content;
  std::string sha256;  // 64 hexadecimal digits
  std::string source;  // "rank table"
};

// A process in addition to the ranks, which cannot run without it: MindSpore's scheduler.
struct AuxiliaryPlan {
  std::string name;  // name of its log; "scheduler"
  std::size_t node = 0;
  std::vector<std::string> argv;
  std::string cwd;
  std::map<std::string, Value> env;
};

// A file of a node that is changed on a copy for the node's ranks (patch_plan.h).
struct PatchPlan {
  std::size_t node = 0;
  std::string source;  // absolute
  std::string path;    // of the copy, absolute
  // key of the spec: "launch.patch", "launch.vars", "observe.profile"
  std::string key;
  std::vector<std::pair<std::string, std::string>> items;  // path in it, YAML value; in this order
  std::map<std::string, std::string> vars;                 // of a shell script
};

// A value that a configuration must not have (config_checks.h). A missing value is accepted.
struct RefusedValue {
  std::string at;  // path of the value, with dots
  bool value{};
  std::string because;  // and what would help
};

// A file that must exist on a node. It may also be the source of a copy: then the copy is made
// first, and the file itself is checked.
struct NeedPlan {
  std::size_t node = 0;
  std::string source;  // absolute
  std::string key;     // of the spec: "launch.script", "launch.config"
  std::vector<RefusedValue> refused;
};

struct LaunchPlan {
  std::vector<RankPlan> ranks;  // by rank
  // source of each word of a rank's argv: "launch.args[2]", "engine megatron", ...
  std::vector<std::string> argv_sources;
  std::vector<FilePlan> files;  // of the nodes that `ranks` are on
  std::vector<AuxiliaryPlan> auxiliaries;
  std::vector<PatchPlan> patched;                     // of the nodes that `ranks` are on
  std::vector<NeedPlan> needed;                       // of the nodes that `ranks` are on
  std::shared_ptr<const ranktable::TableFile> table;  // empty: this launch has no rank table
  v1::Watching watching;
  [[nodiscard]] const RankPlan* find(std::uint32_t rank) const;  // nullptr: not in this plan
};

struct Launching;  // rows.h

// A problem that plan_launch() would find in a spec for every placement. common/spec reports it
// together with the position in the file.
struct KeyedProblem {
  std::string key;
  std::string message;
};

struct LineHead;         // grammar_rows.h
class CheckpointLayout;  // layout.h
struct LayoutOptions;
struct ResumeAsk;  // resume_plan.h
struct ResumeJobs;
struct SavedCheckpoint;

// All that anybody asks of an engine. A pointer that is null means that the engine has nothing of
// that kind.
struct Engine {
  std::string_view name;
  std::string_view summary;  // one line, for `explain engine`
  // --- log lines and checkpoints
  std::string_view grammar;  // name of its log lines (observe.progress: auto)
  std::array<std::span<const LineHead> (*)(), 2> log_lines = {};
  std::string_view layout;  // name of its checkpoints (checkpoint.layout: auto)
  std::unique_ptr<CheckpointLayout> (*checkpoints)(const LayoutOptions&) = nullptr;
  bool rank_dirs = false;  // each rank has a directory of its own in them
  // --- keys of the spec
  std::string_view script = {};  // default of launch.script
  bool own_modes = false;        // launch.mode, launch.launcher and launch.config are for it
  std::span<const std::string_view> builtin_patches = {};  // code.patches: builtin:NAME
  bool lockstep = false;   // launch.lockstep: auto means true, where saves_apart()
  bool last_step = false;  // success: auto of a training means it, unless no_last_step()
  // variables that runtime.env and resume.env must not set
  std::span<const std::string_view> identity;
  // variables that make the engine believe that it runs inside a cloud platform: refused
  std::span<const std::string_view> cloud;
  // --- ranks
  // its ranks use HCCL on Ascend devices; two jobs on one host need different HCCL ports
  bool hccl = false;
  bool torch_workers = false;  // its ranks are PyTorch's, with torchrun's variables
  bool any_program = false;    // muster knows nothing of what is run
  // Arguments that name data to read. Where one's value is the URL of a store, the data is an input
  // of that name, and the argument gets its path.
  std::span<const std::string_view> input_options = {};
  // The same for keys of launch.config, wherever they are in it.
  std::span<const std::string_view> input_keys = {};
  // Those whose values, up to the next argument, may be the beginnings of names of files to read.
  std::span<const std::string_view> prefix_options = {};
  // The option with the URL that outputs go to. It is taken out of the arguments: muster uploads.
  std::string_view output_option = {};
  std::string_view output_key = {};  // the same in its configuration, at the top
  bool own_arguments = false;  // it has a parser of arguments of its own, whose flags muster knows
  // Whether its ranks find each other by a rank table, as launch.launcher has it.
  bool (*by_table)(const v1::JobSpec&) = nullptr;
  // Adds the engine's variables to every rank of the plan (source "engine NAME"), and may change
  // the command line. It runs after the spec's own environment is set and before the command line
  // is expanded. So its words may contain templates.
  void (*launch)(Launching&);
  // Finds what the engine itself would refuse in a complete spec, on any placement. Null: nothing.
  void (*check)(const v1::JobSpec&, std::vector<KeyedProblem>&) = nullptr;
  // launch.per: node: the edits that a launcher called inside the script applies to the training
  // program's own arguments. Null: no edits.
  ArgumentEdits (*intercepted)(const LaunchRequest&) = nullptr;
  // Whether the engine's scheduler runs beside rank 0 where muster starts the ranks. Null: never.
  bool (*has_scheduler)(const v1::JobSpec&) = nullptr;
  // Whether `launch` gives this command ${save.dir} as the directory to save to. Null: never.
  bool (*sets_save_dir)(const v1::JobSpec&) = nullptr;
  // Whether `launch` (for a node's script `intercepted`) gives this command ${start.dir} as the
  // weights to begin with. Null: never; the spec has to name ${start.dir}.
  bool (*loads_start)(const v1::JobSpec&) = nullptr;
  bool names_dirs = false;  // --save and --load name its directories (named_dirs.h)
  // --- the end of a training: training_end.h
  std::string (*run_mode)(const v1::JobSpec&) = nullptr;  // that the command names; empty: none
  bool (*trains_surely)(const v1::JobSpec&) = nullptr;
  std::string (*rank_file)(const v1::JobSpec&) = nullptr;
  // --- observe.profile and observe.dump: observing.h
  void (*put_profile)(Launching&) = nullptr;
  void (*check_profile)(const v1::JobSpec&, std::vector<KeyedProblem>&) = nullptr;
  std::optional<v1::ConfigPatch> (*profile_patch)(const v1::JobSpec&) = nullptr;
  bool profiles_one_step = false;  // start and stop may be the same step
  void (*put_dump)(Launching&) = nullptr;
  void (*check_dump)(const v1::JobSpec&, std::vector<KeyedProblem>&) = nullptr;
  // --- another size, one whole file: resume_plan.h
  bool (*is_cut_by_rank)(const ResumeAsk&) = nullptr;  // then the next two are there
  Result<ResumeJobs> (*cut_again)(const ResumeAsk&) = nullptr;
  Result<ResumeJobs> (*make_whole)(const ResumeAsk&, const std::string& file) = nullptr;
  Result<void> (*check_size)(const ResumeAsk&) = nullptr;
  Result<bool> (*is_whole)(const v1::JobSpec&, const SavedCheckpoint&) = nullptr;
  // What a node's script of this engine needs beyond the variables that all have.
  void (*put_script)(const LaunchRequest&, RankPlan&) = nullptr;
  // --- a launch without muster that becomes a spec: launch_signs.h
  LaunchSigns signs = {};
};
std::span<const Engine> engine_table();
const Engine* find_engine(std::string_view name);

// `asked` is resources.type, and `has` is the type that a node reports for its device. "ascend"
// asks for every kind of Ascend device.
bool is_ascend(std::string_view type);
bool is_device_type(std::string_view asked, std::string_view has);

// Whether the agent of the first node starts the engine's scheduler, too: an auxiliary process.
// `spec` is complete.
bool has_scheduler(const v1::JobSpec& spec);

inline constexpr std::uint32_t kHcclPorts = 32;  // ports that HCCL takes from HCCL_IF_BASE_PORT on
// How many ranks muster starts on one of the job's nodes. With launch.per: node a rank is the
// node's script, which has all devices of the node.
std::uint32_t ranks_on_node(const v1::JobSpec& spec, std::size_t node, std::size_t devices);

// Whether the job's nodes need ports for HCCL: the engine uses HCCL, and the spec sets no
// HCCL_IF_BASE_PORT.
bool wants_hccl_port(const v1::JobSpec& spec);

// Whether a spec must not set this variable: one of the engine's identity variables, or any
// MUSTER_*.
bool is_identity(const Engine& engine, std::string_view variable);

// Bounds of what a process can be given. The kernel's own bounds are a little higher: 128 KiB for
// one string, a quarter of the stack limit for all strings together.
inline constexpr std::size_t kStringBytesMax = 128 * 1024 - 1;
inline constexpr std::size_t kProcessBytesMax = 1'500'000;

// runtime.python: auto means python3 on the rank's PATH, so that an activated venv or conda
// environment is used. If there is no such file, it means the system's python3. The node's agent
// decides this when it resolves argv[0], because it depends on the node's file system.
inline constexpr std::string_view kPythonAuto = "python3";
inline constexpr std::string_view kPythonSystem = "/usr/bin/python3";

// Expands templates, and builds argv and environment of every rank. Errors name the key.
Result<LaunchPlan> plan_launch(const LaunchRequest& request);

// `resolved`: what is known of the stages before this one; nullptr: any may be there.
std::vector<KeyedProblem> check_launch(const v1::JobSpec& spec,
                                       const v1::ResolvedSpec* resolved = nullptr);

// training_end.cc and save_path.cc implement the next two functions. They take a spec whose launch
// and observe are complete.
//
// Why no line of the ranks' logs can show that the training reached its last step. Empty: a line
// can show it.
std::string no_last_step(const v1::JobSpec& spec);
// Whether the ranks save where muster decides, with a directory for each attempt. This is so if the
// engine's row gives them ${save.dir}, or if the spec names it (or MUSTER_SAVE_DIR) in the command,
// the working directory, the environment or the setup.
bool saves_apart(const v1::JobSpec& spec);

// Makes only the rank table, from spec and nodes. Every plan of the attempt has the same table.
// Null: this launch has no rank table. Errors as of plan_launch().
Result<std::shared_ptr<const ranktable::TableFile>> plan_table(const LaunchRequest& request);

// launch.per: node: where a rank of the training runs inside a node's script. Nothing: no rank has
// this number.
struct TrainingPlace {
  std::size_t node = 0;  // index of the node; its script is the plan's rank first_rank of that node
  std::uint32_t local_rank = 0;
};
std::optional<TrainingPlace> training_place(const LaunchRequest& request, std::uint32_t number);
// The script's own plan, overlaid with the values that muster's launcher gives this rank.
// launch.launcher decides which launcher that is. Variables that the script exports are not known.
RankPlan training_rank(const LaunchRequest& request, const RankPlan& script, std::uint32_t number,
                       TrainingPlace place);

// One node's part of the plan as a message. The caller (controller/links) fills in boot, instance,
// graces, ports and limits.
v1::NodeLaunch node_launch(const LaunchRequest& request, const LaunchPlan& plan, std::size_t node);

// Directories by rule. `cluster_out` is used when the spec names no output_dir.
std::string out_dir(const v1::JobSpec& spec, std::string_view job_id, std::string_view cluster_out);
// Of an accepted job: its own outputs_root goes before `cluster_out`.
std::string out_dir(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved,
                    std::string_view job_id, std::string_view cluster_out);
// errors: a template that has no value for a whole job
Result<std::string> checkpoint_dir(const v1::JobSpec& spec, std::string_view out_dir);
std::string save_dir(const v1::JobSpec& spec, std::string_view out_dir, std::uint32_t attempt);
std::string resume_dir(const v1::JobSpec& spec, std::string_view out_dir, std::uint32_t attempt);
// code.at; with code.patches the node's copy of it
std::string code_dir(const v1::JobSpec& spec, std::string_view out_dir, std::size_t node);
// logs of ranks that a node's script has started
std::string rank_log_dir(std::string_view out_dir, std::uint32_t attempt);
// below out_dir: the working directories that muster makes
std::string work_dir(std::string_view out_dir, std::uint32_t attempt);
// stage.creates, absolute; empty: the stage has none. Errors: as for checkpoint_dir
Result<std::string> creates_path(const v1::JobSpec& spec, std::string_view out_dir);

// --- templates: a closed list; `$$` is a dollar --------------------------------------------------
// Returns the names used in `text`, in order. Errors: an unknown name (the message has the nearest
// known one), or a `${` without its end.
Result<std::vector<std::string>> template_names(std::string_view text);
std::span<const std::string_view> known_templates();

}  // namespace muster::engine
