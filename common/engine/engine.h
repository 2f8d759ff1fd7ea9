// Training engines, pure: spec + placement -> command lines, environment, files; the grammar of log
// lines (grammar.h); the layout of checkpoints (layout.h). One row an engine in engine_table();
// what a row does and the sources of its formats: torch.cc, megatron.cc, mindspeed_mm.cc,
// mindformers.cc, command.cc.
#pragma once

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
#include "muster/v1/agent_service.pb.h"
#include "muster/v1/spec.pb.h"

namespace muster::ranktable {
struct TableFile;
}

namespace muster::engine {

struct NodeSlot {
  std::string name;
  std::string address;  // of the training traffic
  // logical: what DEVICE_ID, ASCEND_RT_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES count
  std::vector<std::uint32_t> devices;
  std::uint32_t first_rank = 0;
  std::uint32_t rank_count = 0;
  std::string device_type;  // of its devices, for resources.type auto; empty = not known
  // What the node's agent has found out; empty = not known.
  std::string interface;     // network interface that has `address`
  std::string device_model;  // "910B3": whose rules a rank table keeps
  // beside `devices`; empty = the same: device_id of a rank table
  std::vector<std::uint32_t> physical_ids;
  std::vector<std::string> device_ips;  // of the devices' own network ports, beside `devices`
  // beside `devices`; with super_pod_id: a rank table of version 1.2
  std::vector<std::string> super_device_ids;
  std::string super_pod_id;
  std::string server_id;  // its name in a rank table; empty = `address`
  // first of kHcclPorts on the host, for HCCL_IF_BASE_PORT; 0 = HCCL's own
  std::uint16_t hccl_port = 0;
};

struct RankRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// A node whose own disk has what ranks of an attempt have saved (checkpoint.storage: local).
struct ShardOwner {
  std::string node;
  RankRange ranks;  // count 0: of all
};
struct StageOwners {
  std::uint32_t attempt = 0;
  std::vector<ShardOwner> nodes;
};

// A whole checkpoint of an earlier job whose node's script named the directory `as`; without a
// path: that job has none.
struct SavedBefore {
  std::string as;
  std::string job;
  std::string path;
  std::int64_t step = 0;
};

// Everything a launch depends on. The same request always gives the same plan.
struct LaunchRequest {
  const v1::JobSpec* spec = nullptr;  // defaults filled in
  std::string job_id;
  std::uint32_t attempt = 1;
  std::vector<NodeSlot> nodes;  // rank order
  std::uint16_t master_port = 0;
  std::string out_dir;     // ${out}
  std::string save_dir;    // ${save.dir}: the attempt's own
  std::string resume_dir;  // ${resume.dir}; empty at a first start
  std::int64_t resume_step = -1;
  std::uint32_t resume_shards = 0;  // that it had when it was found whole; 0: not known
  // save directory of the attempt that wrote the checkpoint: ResumeLinks.source
  std::string resume_source;
  bool resume_from_start = false;  // by spec.start: no attempt of this job wrote it
  // checkpoint.storage: local: who has what lies in resume_source
  std::vector<ShardOwner> resume_owners;
  std::map<std::string, StageOwners> stage_owners;  // and what stages have saved
  // launch.per: node: what its script may name with --load; newest first of each directory
  std::vector<SavedBefore> saved;
  // ${start.dir}: what spec.start gives as weights; empty: nothing. Of a checkpoint it is the
  // directory of links, else the directory that the spec names.
  std::string start_dir;
  // Plan these ranks alone, and rank 0, by whose values goes what is said once for all: each is
  // what it is in the whole plan.
  std::optional<RankRange> only;
  // The rank table, when an earlier plan of the same attempt made it (LaunchPlan::table): a plan a
  // node then costs no table each. Empty: made anew.
  std::shared_ptr<const ranktable::TableFile> table;
  // The nodes are not of a placement: what they lack for a rank table is made up instead of
  // refused.
  bool imagined = false;
  // What the controller sets in the spec (paths of inputs, directories of stages) may be missing:
  // it is made up, as long as it can get.
  bool unresolved = false;

  // An attempt that goes on from a checkpoint: gets resume.args and resume.env.
  [[nodiscard]] bool resuming() const { return !resume_dir.empty() && resume_step >= 0; }
  [[nodiscard]] std::size_t world_size() const;
};

struct Value {
  std::string text;
  std::string source;  // "runtime.env", "resume.env", "engine torch", "muster", ...
};

struct RankPlan {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::size_t node = 0;  // index in LaunchRequest::nodes
  // argv[0] may be a bare name: resolved on the node, on the PATH of its environment
  std::vector<std::string> argv;
  std::string cwd;
  std::map<std::string, Value> env;  // all of this rank's
  std::vector<std::uint32_t> devices;
  // where its engine's process log goes, below the node's run directory (plog.h); empty: where the
  // engine, or the job, puts it
  std::string plog_dir;
  std::string success_file;  // success.rank_file of this rank, absolute; empty: none
};

// A file that has to be on a node, whole, before its ranks start.
struct FilePlan {
  std::size_t node = 0;
  std::string path;  // absolute
  std::uint32_t mode = 0644;
  std::shared_ptr<const std::string> content;
  std::string sha256;  // 64 hexadecimal digits
  std::string source;  // "rank table"
};

// A process beside the ranks that they cannot do without: MindSpore's scheduler.
struct AuxiliaryPlan {
  std::string name;  // of its log; "scheduler"
  std::size_t node = 0;
  std::vector<std::string> argv;
  std::string cwd;
  std::map<std::string, Value> env;
};

// A file of a node's that is changed on a copy for its ranks (patch_plan.h); without a path: one
// that has to be there as it is, and whose `items` are what it must not say (config_checks.h).
struct PatchPlan {
  std::size_t node = 0;
  std::string source;  // absolute
  std::string path;    // of the copy
  // of the spec: "launch.patch", "launch.vars", "launch.config"
  std::string key;
  std::vector<std::pair<std::string, std::string>> items;  // place, value in YAML; in this order
  std::map<std::string, std::string> vars;                 // of a shell script
};

struct LaunchPlan {
  std::vector<RankPlan> ranks;  // by rank
  // where each word of a rank's argv comes from: "launch.args[2]", "engine megatron", ...
  std::vector<std::string> argv_sources;
  std::vector<FilePlan> files;  // of the nodes that `ranks` are on
  std::vector<AuxiliaryPlan> auxiliaries;
  std::vector<PatchPlan> patched;                     // of the nodes that `ranks` are on
  std::shared_ptr<const ranktable::TableFile> table;  // empty: this launch has none
  v1::Watching watching;
  [[nodiscard]] const RankPlan* find(std::uint32_t rank) const;  // nullptr: not of this plan
};

struct Launching;  // rows.h

// Every problem that plan_launch() would meet with a spec, whatever the placement: what common/spec
// reports with places.
struct KeyedProblem {
  std::string key;
  std::string message;
};

// Lines for the launcher shim, carried out in this order on the arguments behind the training
// program (docs/launcher-shim.md):
//   only-with NAME...      what follows counts only where one of these options is there
//   only-script NAME       what follows counts only for a program of this file name
//   set NAME VALUE         gives every NAME that has a value another one
//   put NAME VALUE         the same; where there is none, it is put to the end
//   drop NAME              takes the flag out
//   drop-value NAME        takes the option out, with its value
//   match NAME OTHER       the flag NAME is there exactly when OTHER is
//   saves NAME FLAG        changes nothing: the directory that NAME has is where the script would
//                          save, and with FLAG it would save weights alone
//   loads NAME             where NAME has a directory that an earlier job's script would have saved
//                          in: that job's checkpoints instead
using ArgumentEdits = std::vector<std::string>;

struct Engine {
  std::string_view name;
  std::string_view summary;  // one line, for `explain engine`
  std::string_view grammar;  // default row of the grammar table
  std::string_view layout;   // default row of the layout table
  bool lockstep = false;     // launch.lockstep: auto, where saves_apart()
  bool last_step = false;    // success: auto of a training, unless no_last_step()
  // variables that runtime.env and resume.env may not set
  std::span<const std::string_view> identity;
  // variables by which it would take itself to be inside a cloud platform: refused
  std::span<const std::string_view> cloud;
  // on Ascend devices its ranks talk by HCCL, which two jobs on one host want different ports for
  bool hccl = false;
  // Adds the engine's variables to every rank of the plan (source "engine NAME"); may change the
  // command line. Runs when the spec's own environment is in and before the command line is
  // expanded, so that templates may stand in it.
  void (*launch)(Launching&);
  // What the engine itself would refuse of a complete spec, on any placement. Null: nothing.
  void (*check)(const v1::JobSpec&, std::vector<KeyedProblem>&) = nullptr;
  // launch.per: node: what a launcher called inside the script does to the training program's own
  // arguments. Null: nothing.
  ArgumentEdits (*intercepted)(const LaunchRequest&) = nullptr;
  // What an agent has to be able to do for it beyond the first release's, where muster starts the
  // ranks: a word of Inventory.features. Null, empty: nothing.
  std::string_view (*needs)(const v1::JobSpec&) = nullptr;
  // Whether `launch` gives this command ${save.dir} as the place to save to. Null: never.
  bool (*sets_save_dir)(const v1::JobSpec&) = nullptr;
  // Whether `launch` (or `adopted`) gives this command ${start.dir} as the weights to begin with.
  // Null: never, the spec has to name it.
  bool (*loads_start)(const v1::JobSpec&) = nullptr;
};
std::span<const Engine> engine_table();
const Engine* find_engine(std::string_view name);

// resources.type as it is asked for, and what a node says its device is: "ascend" asks for every
// kind of them.
bool is_ascend(std::string_view type);
bool is_device_type(std::string_view asked, std::string_view has);

// What an agent has to be able to do for this job beyond the first release's: words of
// Inventory.features. `spec` is complete.
inline constexpr std::string_view kLaunchFiles = "launch-files", kAuxiliaries = "auxiliaries",
                                  kSetup = "setup", kNodeScript = "node-script",
                                  kPatchedFiles = "patched-files", kContainers = "containers",
                                  kRankFiles = "rank-files", kCodePatches = "code-patches",
                                  kContainerLimits = "container-limits",
                                  kFetchFiles = "fetch-files";
std::vector<std::string_view> features_needed(const v1::JobSpec& spec);
// Not needed: of an agent without it (before 0.4) status 0 is all that there is to judge an end by
// (Watching.success_last_step).
inline constexpr std::string_view kLastStep = "last-step";

inline constexpr std::uint32_t kHcclPorts = 32;  // that HCCL takes from HCCL_IF_BASE_PORT on
// How many ranks muster starts on one of the job's nodes: with launch.per: node a rank is the
// node's script, which holds all of its devices.
std::uint32_t ranks_on_node(const v1::JobSpec& spec, std::size_t node, std::size_t devices);

// Whether the job's nodes need ports for it: an engine that uses it, and no HCCL_IF_BASE_PORT of
// the spec's own.
bool wants_hccl_port(const v1::JobSpec& spec);

// The name of a rank's environment that a spec may not set, by engine: the engine's identity
// variables and everything MUSTER_*.
bool is_identity(const Engine& engine, std::string_view variable);

// Bounds of what a process can be given; the kernel's own are a little higher (one string: 128 KiB,
// all of them: a quarter of the stack limit).
inline constexpr std::size_t kStringBytesMax = 128 * 1024 - 1;
inline constexpr std::size_t kProcessBytesMax = 1'500'000;

// What runtime.python: auto stands for: python3 on the rank's PATH, so that an activated venv or
// conda environment counts; where there is none, the system's. Whether there is one, the node's
// file system decides: its agent resolves argv[0].
inline constexpr std::string_view kPythonAuto = "python3";
inline constexpr std::string_view kPythonSystem = "/usr/bin/python3";

// Expands templates, builds argv and environment of every rank. Errors name the key.
Result<LaunchPlan> plan_launch(const LaunchRequest& request);

std::vector<KeyedProblem> check_launch(const v1::JobSpec& spec);

// What training_end.cc and save_path.cc know of a spec whose launch and observe are complete.
// Why nothing in its ranks' logs can show that the training reached its last step; empty: something
// can.
std::string no_last_step(const v1::JobSpec& spec);
// Whether its ranks save where muster says, each attempt apart: the engine's row gives them
// ${save.dir}, or the spec names it (or MUSTER_SAVE_DIR) in the command, the working directory, the
// environment or the setup.
bool saves_apart(const v1::JobSpec& spec);

// The rank table alone, from spec and nodes: that of every plan of the attempt. Null: this launch
// has none. Errors as of plan_launch().
Result<std::shared_ptr<const ranktable::TableFile>> plan_table(const LaunchRequest& request);

// launch.per: node: where a rank of the training runs, inside of a node's script. Nothing: there is
// none of this number.
struct TrainingPlace {
  std::size_t node = 0;  // whose script: a rank of the plan with this number's first_rank
  std::uint32_t local_rank = 0;
};
std::optional<TrainingPlace> training_place(const LaunchRequest& request, std::uint32_t number);
// The script's own plan with what muster's launcher gives this rank over it, as far as the engine
// tells which launcher that is. What the script exports is not known.
RankPlan training_rank(const LaunchRequest& request, const RankPlan& script, std::uint32_t number,
                       TrainingPlace place);

// One node's part as it goes over the wire; boot, instance, graces, ports and limits are the
// caller's (controller/links).
v1::NodeLaunch node_launch(const LaunchRequest& request, const LaunchPlan& plan, std::size_t node);

// Where things are, by rule. `cluster_out` is used when the spec names no output_dir.
std::string out_dir(const v1::JobSpec& spec, std::string_view job_id, std::string_view cluster_out);
// errors: a template that has no value for a whole job
Result<std::string> checkpoint_dir(const v1::JobSpec& spec, std::string_view out_dir);
std::string save_dir(const v1::JobSpec& spec, std::string_view out_dir, std::uint32_t attempt);
std::string resume_dir(const v1::JobSpec& spec, std::string_view out_dir, std::uint32_t attempt);
// code.at; with code.patches the node's copy of it
std::string code_dir(const v1::JobSpec& spec, std::string_view out_dir, std::size_t node);
// logs of ranks that a node's script has started
std::string rank_log_dir(std::string_view out_dir, std::uint32_t attempt);
// below it, working directories that muster makes
std::string work_dir(std::string_view out_dir, std::uint32_t attempt);
// stage.creates, absolute; empty: it has none. Errors: as checkpoint_dir
Result<std::string> creates_path(const v1::JobSpec& spec, std::string_view out_dir);

// --- templates: a closed list; `$$` is a dollar --------------------------------------------------
// Names used in `text`, in order, or an error that names an unknown one and the nearest known one,
// one that has no value in this release, or a `${` without its end.
Result<std::vector<std::string>> template_names(std::string_view text);
std::span<const std::string_view> known_templates();

}  // namespace muster::engine
