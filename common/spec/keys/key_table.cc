#include "common/spec/keys/key_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "common/engine/model/observing.h"
#include "common/spec/keys/key_type.h"

namespace muster::spec {
namespace {

constexpr std::uint64_t kUint32Most = std::numeric_limits<std::uint32_t>::max(),
                        kStepMost = std::numeric_limits<std::int32_t>::max();

constexpr auto kRows = std::to_array<KeyRow>({
    // clang-format off
    {"name", &kText, "", "a-z 0-9 . _ -, at most 63 characters", "", "what people call the job; unique among live jobs", "job_name title"},
    {"description", &kText, "\"\"", "text, at most 1024 bytes", "", "a sentence for people", "comment"},
    {"labels", &kTextMap, "{}", "NAME: text, at most 64", "", "for people and filters; muster reads nothing into them", "tags annotations"},
    {"compat", &kChoiceOrNull, "none", "none | modelarts", "", "modelarts: the variables (MA_*, VC_*) and the rank table that scripts written for that platform look for"},
    {"engine", &kChoice, "", "mindformers | megatron | mindspeed-mm | torch | deepspeed | command", "", "what is run: decides the variables, how progress is read and what a whole checkpoint is", "framework backend"},

    {"code", &kSection, "", "", "", "the program's files"},
    {"code.from", &kCodeFrom, ".", "a directory", "", "directory of the code, relative to the spec's; used in place, so every node must have it", "code_dir source src workspace repo", "code.at"},
    {"code.at", &kCodeAt, "auto", "auto | an absolute directory", "", "directory of the code on every node, used in place", "", "code.at"},
    {"code.exclude", &kLater, "[]", "", "", "files that a snapshot leaves out"},
    {"code.patches", &kCodePatches, "[]", "a file | list of files, each a unified diff relative to the spec's directory, or builtin:NAME; at most 64", "", "patches put on a copy of the code that each node makes; its ranks get the copy"},
    {"code.parts", &kLater, "[]", "", "", "further trees in addition to it"},

    {"runtime", &kSection, "", "", "", "what the ranks run in"},
    {"runtime.image", &kFullTextOrNull, "null", "null | an image's name | file:///x.tar", "", "container image that setup, auxiliary processes and ranks run in; null: on the node itself", "container docker"},
    {"runtime.python", &kText, "auto", "auto | a path | a name on PATH", "", "interpreter for launch.script; auto: python3 on the rank's PATH, else /usr/bin/python3"},
    {"runtime.setup", &kSetup, "[]", "text | list of texts | {run: , timeout: }", "", "shell commands, once on every node before its ranks, which inherit the shell's environment", "prolog pre_run init", "runtime.setup runtime.setup_timeout"},
    {"runtime.setup.run", &kTexts, "[]", "text | list of texts", "", "the commands, one after another; the first that fails ends the start", "", "runtime.setup"},
    {"runtime.setup.timeout", &kDuration, "30m", "a duration, 1s..24h", "", "how long they may take on a node, all together", "", "runtime.setup_timeout"},
    {"runtime.requirements", &kLater, "auto", "", "", "Python packages to install at the start"},
    {"runtime.env", &kTextMap, "{}", "NAME: text, at most 4096", "", "environment of every rank; templates are filled in", "environment envs env_vars variables"},
    {"runtime.mounts", &kMounts, "[]", "list of SRC[:DST][:ro] | {source: , target: , read_only: }", "", "files and directories of the node inside the container, in addition to the job's own", "volumes binds"},
    {"runtime.user", &kText, "submitter", "submitter", "", "whom the ranks run as; submitter: the user of the node's agent"},
    {"runtime.limits", &kSection, "", "", "", "limits of a rank's process, where raising one without the right to is a warning, and of a node's container"},
    {"runtime.limits.nofile", &kNumberOrZero, "1048576", "1..1048576 | null", "", "open files; null: as the system has it", "", "", 1, kNofileMax},
    {"runtime.limits.memlock", &kLockable, "unlimited", "a size | unlimited | null", "", "memory that may be locked; null: as the system has it"},
    {"runtime.limits.memory", &kSize, "null", "a size, at least 16MiB | null", "", "memory of all processes of a node's container together; null: as much as there is", "", "runtime.limits.memory_bytes"},
    {"runtime.limits.cpus", &kCpus, "null", "0.1..4096, at most three decimals | null", "", "processors that all processes of a node's container may keep busy together; null: all", "", "runtime.limits.millicpus"},

    {"launch", &kSection, "", "", "", "what is started, and how often"},
    {"launch.per", &kChoice, "rank", "rank | node | once", "", "rank: a process a device; node: a script a node, which starts its ranks itself; once: one process in all, on the first node"},
    {"launch.run", &kWords, "null", "text, split like a shell's words | list of words", "", "the whole command; else launch.script and launch.args", "cmd command entrypoint exec"},
    {"launch.script", &kText, "auto", "a path, below the code directory unless absolute", "", "the program; *.py is run as `python -u SCRIPT`; auto: mindformers run_mindformer.py, else none: launch.run says what to run", "program main entry file"},
    {"launch.config", &kFullTextOrNull, "null", "a path, below the code directory unless absolute | null", "", "mindformers: its configuration, for --config", "config_file config_path yaml_config"},
    {"launch.mode", &kChoice, "train", "train | finetune | eval | predict | strategy", "", "mindformers: what it is asked for, for --run_mode; strategy: compile, save each rank's strategy file, end"},
    {"launch.launcher", &kChoice, "auto", "auto | ranktable | msrun", "env", "mindformers: how ranks find each other; auto: by a rank table; msrun: MindSpore's scheduler"},
    {"launch.intercept", &kChoice, "auto", "auto | off", "", "with per: node: muster answers a torchrun or msrun that the script calls; off: the script's own does"},
    {"launch.args", &kWordsOrMap, "\"\"", "text, split like a shell's words | list of words | map: true gives `--key`, a list repeats it, null and false drop it", "", "arguments of launch.script; templates are filled in", "arguments argv params parameters options script_args"},
    {"launch.patch", &kConfigPatch, "{}", "{FILE: {PLACE: value}}; PLACE is a.b.c, a.list[2] or list[type=NAME].key", "", "changes to YAML and JSON files, on a copy that the ranks get instead"},
    {"launch.vars", &kTextMap, "{}", "NAME: text", "", "NAME= assignments of the shell script, replaced in a copy that is run instead"},
    {"launch.cwd", &kText, "auto", "auto | a path, below the code directory unless absolute", "", "working directory of every rank; auto: the code directory, with mindformers one of each rank's own", "workdir working_dir work_dir chdir"},
    {"launch.lockstep", &kSwitch, "auto", "auto | true | no", "", "ranks advance only together, so that one stopped rank stops all; auto: yes where ranks train, a process a device, and save into ${save.dir} (the engine sees to it, or the command, the environment or the setup names it); else no, and with command"},

    {"resources", &kSection, "", "", "", "nodes and devices"},
    {"resources.nodes", &kNumber, "1", "1..65536", "", "how many nodes", "num_nodes nnodes node_num node_count n_nodes server_num machines replicas", "", 1, 65536},
    {"resources.devices", &kDevices, "8", "1..1024 | \"[4,8)\" | [0,2]", "", "devices of every node: how many, or which (1 with launch.per: once)", "gpus gpu npus npu cards card_num num_gpus num_npus gpu_num npu_num ngpus device_num num_devices gpus_per_node npus_per_node devices_per_node nproc_per_node nproc accelerators", "resources.device_ids resources.devices"},
    {"resources.type", &kChoice, "auto", "auto | cpu | ascend | ascend910 | ascend910b | ascend910_93 | nvidia", "", "kind of device; auto: what the nodes have; ascend: any of these, all of one kind", "device_type accelerator gpu_type npu_type"},
    {"resources.hosts", &kNodeNames, "[]", "list of node names", "", "only these nodes; empty: any", "nodelist node_list hostfile servers"},
    {"resources.select", &kTextMap, "{}", "LABEL: text", "", "only nodes with these labels", "node_selector constraint"},
    {"resources.rank_table", &kFile, "null", "a file, relative to the spec's directory | null", "", "a rank table of one's own (version 1.0 or 1.2): fixes nodes, devices and the order of ranks", "ranktable rank_table_file hccl_json", "", 0, kRankTableBytesMax},
    {"resources.spares", &kLater, "0", "", "", "nodes kept ready in addition to the job's"},
    {"resources.min_nodes", &kLater, "same", "", "", "go on with fewer nodes, down to this"},

    {"network", &kSection, "", "", "", "how ranks reach each other"},
    {"network.interface", &kText, "auto", "auto | a name, as in /sys/class/net", "", "network interface of the training traffic, the same on every node; auto: the one that routes to the first node", "nic ifname socket_ifname"},
    {"network.master_port", &kPort, "auto", "auto | 1..65535", "", "port of rank 0's store; auto: a free one of the controller's range", "port", "", 1, 65535},

    {"inputs", &kInputs, "{}", "NAME: PATH | NAME: {from: PATH, env: VARIABLE, include: [PATTERN]}, at most 64; PATH is absolute, relative to the spec's directory, stage:S/DIR, job:J/DIR, or a URL of a store", "", "files that others have made, used in place, or fetched from a store (muster store): ${inputs.NAME} is the absolute path, the same on every node", "datasets"},

    {"start", &kStart, "", "", "", "weights or a run to start from"},
    {"start.from", &kStartFrom, "none", "none | job:J | stage:S | a save directory: /DIR, stage:S/DIR, job:J/DIR, or a URL of a store", "", "where the checkpoint is that the first attempt begins with: of another job, of a stage of this spec, or in a directory", "pretrained load_checkpoint load"},
    {"start.as", &kChoice, "weights", "weights | resume | resume-or-scratch", "", "weights: the training begins at step 0 with them; resume: it goes on behind that step; resume-or-scratch: so, and from the beginning where there is no whole checkpoint"},
    {"start.step", &kStep, "latest", "latest | a number", "", "which checkpoint; latest: the newest whole one. Of a directory the number has to be there, unless as weights", "", "", 0, kStepMost},
    {"start.reshard", &kLater, "auto", "", "", "fit it to another number of ranks"},

    {"checkpoint", &kSection, "", "", "", "where checkpoints go"},
    {"checkpoint.dir", &kOutPath, "auto", "auto | a path, below ${out} unless absolute", "", "below it each attempt has its own directory, ${save.dir}; auto: ${out}/checkpoints", "save_dir ckpt_dir output_checkpoint"},
    {"checkpoint.storage", &kChoice, "auto", "auto | shared | local", "", "auto, shared: every node sees the same files; local: each node has a disk of its own, and what another one has saved is fetched before a start (mindformers; of other layouts each node goes on from what its own disk has)"},
    {"checkpoint.layout", &kChoice, "auto", "auto | none | mindformers | megatron | mindspeed-mm | torch | deepspeed | command", "", "whose checkpoints lie in ${save.dir}; auto: the engine's; torch, command: those of Megatron-LM, where there are any; none: they are not looked for"},
    {"checkpoint.keep", &kLater, "engine", "", "", "how many are kept"},
    {"checkpoint.mirror", &kLater, "0", "", "", "copies on other nodes"},

    {"resume", &kResume, "auto", "auto | none | {args: , drop: , env: , patch: , vars: }", "", "what changes on an attempt that goes on from a checkpoint; none: every attempt starts from the beginning", "auto_resume", "resume.enabled"},
    {"resume.args", &kWordsOrMap, "\"\"", "as launch.args", "", "arguments put behind launch.args"},
    {"resume.env", &kTextMap, "{}", "as runtime.env", "", "variables over runtime.env"},
    {"resume.drop", &kWords, "[]", "list of flags", "", "arguments of launch.args left out, with their values"},
    {"resume.patch", &kConfigPatch, "{}", "as launch.patch", "", "changes behind those of launch.patch"},
    {"resume.vars", &kTextMap, "{}", "as launch.vars", "", "assignments over those of launch.vars"},

    {"outputs", &kSection, "", "", "", "where results are copied to"},
    {"outputs.dir", &kText, "auto", "auto | an absolute directory", "", "the job's output directory, ${out}, the same over all attempts; auto: the job's own one below the controller's", "output_dir out_dir", "output_dir"},
    {"outputs.to", &kTextOrNull, "null", "null | URL of a store", "", "directory in a store that what is below ${out} is copied to: each whole checkpoint while the job trains, and everything in the end", "remote_save_url output_url upload_to"},
    {"outputs.every", &kDuration, "10m", "a duration, 1s..24h", "", "how often logs, and files other than checkpoints, are copied while the job trains"},
    {"outputs.rate_limit", &kSize, "null", "null | bytes a second, as 200MiB", "", "at most so much is copied by a node while ranks run; null: as much as goes", "bandwidth bwlimit upload_rate"},
    {"outputs.keep", &kNumberOrNull, "null", "1..1000 | null", "", "how many of the job's whole checkpoints stay in the store, the newest ones; null: all", "keep_last keep_checkpoints retention", "", 1, 1000},
    {"outputs.logs_to", &kTextOrNull, "null", "null | URL of a store", "", "directory in a store that logs are copied to, below the job's id: what is new while the job trains, and the rest in the end"},
    {"outputs.include", &kTexts, "[]", "list of patterns, at most 64", "", "which files below ${out} are copied; empty: all"},

    {"observe", &kSection, "", "", "", "how progress is seen"},
    {"observe.profile", &kProfile, "false", "false | true | {start: , stop: , ranks: }", "", "record a profile by the engine's own means: mindformers, megatron, mindspeed-mm"},
    {"observe.profile.start", &kNumberOrNull, "null", "1..4294967295 | null", "", "first step; null: what the engine or its configuration has", "", "", 1, kUint32Most},
    {"observe.profile.stop", &kNumberOrNull, "null", "1..4294967295 | null", "", "last step", "", "", 1, kUint32Most},
    {"observe.profile.ranks", &kRanks, "null", "list of ranks | null", "", "of these ranks alone; null: what the engine or its configuration has"},
    {"observe.dump", &kFile, "null", "a file, relative to the spec's directory | null", "", "mindformers: a configuration of MindSpore's dump of tensors (JSON), for MINDSPORE_DUMP_CONFIG", "", "", 0, engine::kDumpBytesMax},
    {"observe.plog", &kSwitch, "auto", "auto | true | false", "", "a directory of each rank's own for CANN's process log (ASCEND_PROCESS_LOG_PATH), which is searched for why a rank failed; auto: with mindformers, megatron, mindspeed-mm, torch and deepspeed on Ascend devices"},
    {"observe.progress", &kProgress, "auto", "auto | none | {step: RE, loss: RE, total: N or RE}", "", "step and loss from log lines; auto: the engine's own lines; with torch and command those of all engines, and `step N/M loss X`", "", "observe.grammar observe.step observe.loss observe.total"},
    {"observe.progress.step", &kText, "null", "a regular expression (RE2) with one group, the step", "", "which lines report a step", "", "observe.step"},
    {"observe.progress.loss", &kTextOrNull, "null", "a regular expression (RE2) with one group, the loss", "", "the loss, on the same line", "", "observe.loss"},
    {"observe.progress.total", &kTextOrNull, "null", "a number | a regular expression (RE2) with one group", "", "the last step", "", "observe.total"},

    {"success", &kSuccess, "auto", "auto | exit0 | last-step | {regex: RE} | {file: PATH} | {rank_file: PATH}", "", "when the job has succeeded; exit0: every rank ended with status 0; last-step: and the training reached its last step; auto: last-step where mindformers, megatron and mindspeed-mm train (but per: node), else exit0"},
    {"success.regex", &kFullText, "null", "a regular expression (RE2)", "", "status 0 everywhere, and a line of some rank's log matches"},
    {"success.file", &kFullText, "null", "a path, below ${out} unless absolute", "", "status 0 everywhere, and this file is there"},
    {"success.rank_file", &kFullText, "null", "a path with templates, below ${out} unless absolute", "", "status 0 everywhere, and every rank has its file"},

    {"checks", &kLater, "[devices, disk, clock, link, env]", "", "", "what is checked before the start"},

    {"recovery", &kSection, "", "", "", "what happens after a failure"},
    {"recovery.max_restarts", &kNumber, "20", "0..100000", "", "how often the job may be started again within the window", "retries max_retries restarts max_attempts backoff_limit", "", 0, 100'000},
    {"recovery.window", &kDuration, "24h", "a duration, 1s..365d", "", "older restarts are no longer counted"},
    {"recovery.backoff", &kDuration, "0s", "a duration, 0..24h", "", "how long the job waits after an attempt that counts as a restart, before its next one; doubles with each such attempt in a row that got no further, up to 10m; 0s: not at all", "restart_delay retry_delay retry_interval"},
    {"recovery.hang_timeout", &kLater, "auto", "", "", "how long without a step is a hang"},
    {"recovery.orphan_grace", &kDuration, "30m", "a duration, 5s..7d", "", "how long ranks run on without a controller, whose word comes once a second"},
    {"recovery.stop_grace", &kDuration, "10s", "a duration, 0..1h", "", "between SIGTERM and SIGKILL"},
    {"recovery.avoid_failed_node", &kLater, "true", "", "", "start again elsewhere"},
    {"recovery.on", &kLater, "{}", "", "", "answers by class of failure"},

    {"schedule", &kSection, "", "", "", "when the job runs"},
    {"schedule.queue", &kLater, "default", "", "", "which queue", "partition"},
    {"schedule.priority", &kLater, "50", "", "", "who goes first"},
    {"schedule.time_limit", &kLater, "none", "", "", "longest run", "walltime max_time time_limit_seconds"},
    {"schedule.after", &kJobs, "[]", "a job | list of jobs, at most 64; each a name, an id or @last", "", "jobs that must have succeeded before this one is placed", "depends_on depend dependency dependencies"},

    {"notify", &kLater, "[]", "", "", "whom to notify"},
    {"stages", &kStages, "{}", "NAME: {after: , creates: , any key but name and stages}, at most 32; NAME is a-z 0-9 _ -", "", "a chain of jobs in one spec: each stage is a job CHAIN.STAGE, and inherits the keys of the top level"},
    {"stages.NAME", &kSection, "", "", "", "a stage: its own keys over those of the top level, and"},
    {"stages.NAME.after", &kStageAfter, "the stage before it", "a stage | list of stages | []", "", "which stages must have succeeded before it; []: none, it starts at once"},
    {"stages.NAME.creates", &kStageCreates, "null", "a path, below ${out} unless absolute | null", "", "what it makes: its success, unless it has one of its own; where that is still there and nothing that it is made from has changed, a later run does not run it again"},
    // clang-format on
});

struct Meaning {
  std::string_view key, word, meant;
};
constexpr auto kMeanings = std::to_array<Meaning>({
    {"resources.type", "npu", "ascend"},
    {"resources.type", "npus", "ascend"},
    {"resources.type", "huawei", "ascend"},
    {"resources.type", "gpu", "nvidia"},
    {"resources.type", "gpus", "nvidia"},
    {"resources.type", "cuda", "nvidia"},
    {"resources.type", "910b", "ascend910b"},
    {"engine", "mindspeed_llm", "megatron"},
    {"engine", "mindspeed", "megatron"},
    {"engine", "modellink", "megatron"},
    {"engine", "megatron_lm", "megatron"},
    {"engine", "mcore", "megatron"},
    {"engine", "mm", "mindspeed-mm"},
    {"engine", "mindspore", "mindformers"},
    {"engine", "pytorch", "torch"},
    {"engine", "torchrun", "torch"},
    {"engine", "ddp", "torch"},
    {"engine", "fsdp", "torch"},
    {"engine", "accelerate", "torch"},
    {"engine", "ds", "deepspeed"},
    {"engine", "zero", "deepspeed"},
    {"engine", "bash", "command"},
    {"engine", "shell", "command"},
    {"engine", "script", "command"},
    {"launch.per", "device", "rank"},
    {"launch.per", "gpu", "rank"},
    {"launch.per", "npu", "rank"},
    {"launch.per", "process", "rank"},
    {"launch.per", "host", "node"},
    {"launch.per", "job", "once"},
});

std::vector<std::string_view> split_at(std::string_view text, std::string_view between) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + between.size(), text.size()));
  }
  return result;
}

std::string_view parent_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : key.substr(0, dot);
}

// Changes capital letters to small ones, and '-' to '_'.
std::string plain(std::string_view word) {
  std::string text(word);
  for (char& c : text)
    c = c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

std::span<const KeyRow> key_table() { return kRows; }

const KeyRow* find_key(std::string_view key) {
  const auto found = std::ranges::find(kRows, key, &KeyRow::key);
  return found == kRows.end() ? nullptr : &*found;
}

const KeyRow* find_alias(std::string_view section, std::string_view word) {
  const std::string wanted = plain(word);
  const KeyRow* elsewhere = nullptr;
  for (const KeyRow& row : kRows) {
    const auto aliases = split_at(row.aliases, " ");
    if (std::ranges::find(aliases, wanted) == aliases.end()) continue;
    if (parent_of(row.key) == section) return &row;
    if (elsewhere == nullptr) elsewhere = &row;
  }
  return elsewhere;
}

std::string_view value_meant(std::string_view key, std::string_view word) {
  const std::string wanted = plain(word);
  for (const Meaning& one : kMeanings)
    if (one.key == key && one.word == wanted) return one.meant;
  return {};
}

std::vector<const KeyRow*> keys_below(std::string_view section) {
  std::vector<const KeyRow*> result;
  for (const KeyRow& row : kRows) {
    if (parent_of(row.key) == section) result.push_back(&row);
  }
  return result;
}

std::string_view leaf(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

std::vector<std::string_view> fields_of(const KeyRow& row) {
  if (!row.type->has_field) return {};
  return row.fields.empty() ? std::vector{row.key} : split_at(row.fields, " ");
}

std::string_view first_field(const KeyRow& row) {
  return row.fields.empty() ? row.key : row.fields.substr(0, row.fields.find(' '));
}

std::string key_of_field(std::string_view path) {
  const KeyRow* best = nullptr;
  for (const KeyRow& row : kRows) {
    if (!row.type->has_field) continue;
    const std::string_view field = first_field(row);
    const bool inside =
        path.starts_with(field) &&
        (path.size() == field.size() || path[field.size()] == '.' || path[field.size()] == '[');
    if (!inside) continue;
    const bool longer = best == nullptr || field.size() > first_field(*best).size();
    if (longer || (field == row.key && best->key != first_field(*best))) best = &row;
  }
  if (best == nullptr) return std::string(path);
  return std::string(best->key) + std::string(path.substr(first_field(*best).size()));
}

std::vector<std::string_view> choices(std::string_view text) { return split_at(text, " | "); }

}  // namespace muster::spec
