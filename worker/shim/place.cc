#include "worker/shim/place.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "worker/shim/edits.h"

namespace muster::shim {

std::string_view value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : found->second;
}

namespace {

constexpr std::uint32_t kLocalMost = 1024;
constexpr std::string_view kOwn = "MUSTER_SHIM_";

std::optional<std::uint32_t> number_of(const Environment& environment, std::string_view name) {
  const std::string_view text = value_of(environment, name);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The numbers of this launch: those of the job, or with --standalone only those of this node.
struct Numbers {
  std::uint32_t world, first, nodes, node;
  std::string master_addr;
};
Numbers numbers_of(const Call& call, const Place& place) {
  const auto local = static_cast<std::uint32_t>(place.devices.size());
  if (call.has("standalone") && place.nodes > 1)
    return {.world = local, .first = 0, .nodes = 1, .node = 0, .master_addr = "127.0.0.1"};
  return {.world = place.world,
          .first = place.first,
          .nodes = place.nodes,
          .node = place.node,
          .master_addr = place.master_addr};
}

Environment without_shim(const Environment& environment) {
  Environment kept;
  const std::string_view dir = value_of(environment, "MUSTER_SHIM_DIR");
  for (const auto& [name, value] : environment) {
    const bool function =
        name.starts_with("BASH_FUNC_") && value.find("MUSTER_SHIM_DIR") != std::string::npos;
    if (!name.starts_with(kOwn) && !function) kept.emplace(name, value);
  }
  const auto path = kept.find("PATH");
  if (path == kept.end() || dir.empty()) return kept;
  std::string rest;
  for (const std::string& part : split(path->second, ':')) {
    if (part != dir) rest += (rest.empty() ? "" : ":") + part;
  }
  path->second = rest;
  return kept;
}

void put_torchrun(Environment& env, const Call& call, const Place& place, const Numbers& numbers,
                  std::uint32_t local) {
  const std::string rank = std::to_string(numbers.first + local),
                    world = std::to_string(numbers.world);
  const std::string role = call.has("role") ? std::string(call.value("role")) : "default";
  env["RANK"] = rank;
  env["LOCAL_RANK"] = std::to_string(local);
  env["WORLD_SIZE"] = world;
  env["LOCAL_WORLD_SIZE"] = std::to_string(place.devices.size());
  env["GROUP_RANK"] = std::to_string(numbers.node);
  env["GROUP_WORLD_SIZE"] = std::to_string(numbers.nodes);
  env["ROLE_NAME"] = role;
  env["ROLE_RANK"] = rank;
  env["ROLE_WORLD_SIZE"] = world;
  env["MASTER_ADDR"] = numbers.master_addr;
  env["MASTER_PORT"] = place.master_port;
  env["TORCHELASTIC_RESTART_COUNT"] = place.restarts;
  env["TORCHELASTIC_MAX_RESTARTS"] = place.restarts_max;
  env["TORCHELASTIC_RUN_ID"] = place.job_id;
  // Never "True": no process here hosts a store, and every rank would wait for one as a client.
  env["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  if (env.contains("ASCEND_RT_VISIBLE_DEVICES")) env["TORCH_NPU_ELASTIC_USE_AGENT_STORE"] = "False";
  if (!env.contains("TORCH_NCCL_ASYNC_ERROR_HANDLING") &&
      !env.contains("NCCL_ASYNC_ERROR_HANDLING"))
    env["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = env["NCCL_ASYNC_ERROR_HANDLING"] = "1";
  if (place.devices.size() > 1) env.try_emplace("OMP_NUM_THREADS", "1");
}

void put_msrun(Environment& env, const Call& call, const Place& place, const Numbers& numbers) {
  const std::string world = std::to_string(numbers.world);
  env["MS_WORKER_NUM"] = world;
  env["MS_SCHED_HOST"] = numbers.master_addr;
  env["MS_SCHED_PORT"] = place.master_port;
  env["MS_CLUSTER_TIMEOUT"] =
      call.has("cluster_time_out") ? std::string(call.value("cluster_time_out")) : "600";
  env["RANK_SIZE"] = world;
  if (call.has("rank_table_file")) env["RANK_TABLE_FILE"] = call.value("rank_table_file");
}

void put_neutral(Environment& env, const Place& place, const Numbers& numbers,
                 std::uint32_t local) {
  env["MUSTER_RANK"] = std::to_string(numbers.first + local);
  env["MUSTER_LOCAL_RANK"] = std::to_string(local);
  env["MUSTER_WORLD_SIZE"] = std::to_string(numbers.world);
  env["MUSTER_LOCAL_WORLD_SIZE"] = std::to_string(place.devices.size());
}

// msrun runs a program that is no python with python.
bool is_python(const std::string& word) {
  return word == "python" || word == "python3" || word == "pytest";
}

// Returns the arguments before the training program: the interpreter with its options.
std::vector<std::string> front_words(const Call& call, const Interpreter& interpreter,
                                     std::vector<std::string>& program) {
  if (call.launcher == Launcher::Msrun) {
    std::vector<std::string> front;
    if (!is_python(program.front())) return {interpreter.path};
    front.push_back(program.front() == "pytest" ? program.front() : interpreter.path);
    program.erase(program.begin());
    while (program.size() > 1 && program.front().starts_with('-')) {
      front.push_back(program.front());
      program.erase(program.begin());
    }
    return front;
  }
  if (call.has("no_python") && !call.has("run_path")) return {};
  if (call.has("module") && !call.has("run_path")) return {interpreter.path, "-u", "-m"};
  return {interpreter.path, "-u"};
}

bool wants_local_rank(const Call& call) {
  return call.launcher == Launcher::TorchLaunch && !call.has("use_env");
}

std::string link_of(const Call& call, const std::string& name) {
  if (call.launcher != Launcher::Msrun || !call.has("log_dir")) return {};
  return std::string(call.value("log_dir")) + "/" + name;
}

}  // namespace

std::optional<Place> read_place(const Environment& environment) {
  const auto world = number_of(environment, "MUSTER_SHIM_WORLD_SIZE"),
             first = number_of(environment, "MUSTER_SHIM_FIRST_RANK");
  const auto nodes = number_of(environment, "MUSTER_NODES"),
             node = number_of(environment, "MUSTER_NODE_RANK");
  if (!world || !first || !nodes || !node) return std::nullopt;
  Place place{.world = *world,
              .first = *first,
              .nodes = *nodes,
              .node = *node,
              .devices = split(value_of(environment, "MUSTER_DEVICES"), ',')};
  if (place.devices.empty()) place.devices.emplace_back("0");
  if (place.devices.size() > kLocalMost || place.world < place.devices.size() ||
      place.first > place.world - place.devices.size())
    return std::nullopt;
  place.master_addr = value_of(environment, "MUSTER_MASTER_ADDR");
  place.master_port = value_of(environment, "MUSTER_MASTER_PORT");
  place.job_id = value_of(environment, "MUSTER_JOB_ID");
  place.restarts = value_of(environment, "MUSTER_SHIM_RESTARTS");
  place.restarts_max = value_of(environment, "MUSTER_SHIM_MAX_RESTARTS");
  place.logs = value_of(environment, "MUSTER_SHIM_LOGS");
  place.grace_ms = number_of(environment, "MUSTER_SHIM_GRACE_MS").value_or(0);
  return place;
}

std::vector<Process> plan_processes(const Call& call, const Place& place,
                                    const Environment& environment, const ArgumentEdits& edits,
                                    const Interpreter& interpreter) {
  std::vector<std::string> program = call.program;
  std::vector<std::string> argv = front_words(call, interpreter, program);
  edit_arguments(edits, program);
  const Numbers numbers = numbers_of(call, place);
  const Environment common = without_shim(environment);
  const std::size_t script = argv.size();
  argv.insert(argv.end(), program.begin(), program.end());

  std::vector<Process> processes;
  const bool msrun = call.launcher == Launcher::Msrun;
  if (msrun && numbers.node == 0) {
    Process scheduler{.name = "scheduler",
                      .log = place.logs + "/scheduler.log",
                      .link = link_of(call, "scheduler.log"),
                      .argv = argv,
                      .environment = common};
    scheduler.rank = false;
    put_msrun(scheduler.environment, call, place, numbers);
    for (const char* name : {"MUSTER_RANK", "MUSTER_LOCAL_RANK", "RANK_ID", "MS_NODE_ID"})
      scheduler.environment.erase(name);
    scheduler.environment["MS_ROLE"] = "MS_SCHED";
    // MindFormers takes a process without RANK_ID for rank 0
    scheduler.environment["LOCAL_DEFAULT_PATH"] = place.logs + "/scheduler";
    processes.push_back(std::move(scheduler));
  }
  for (std::uint32_t local = 0; local < place.devices.size(); ++local) {
    const std::string rank = std::to_string(numbers.first + local);
    Process process{.name = "rank " + rank,
                    .log = place.logs + "/rank_" + rank + ".log",
                    .link = link_of(call, (call.has("worker_log_name")
                                               ? std::string(call.value("worker_log_name"))
                                               : "worker") +
                                              "_" + rank + ".log"),
                    .argv = argv,
                    .environment = common};
    process.number = numbers.first + local;
    put_neutral(process.environment, place, numbers, local);
    if (msrun) {
      put_msrun(process.environment, call, place, numbers);
      process.environment["MS_ROLE"] = "MS_WORKER";
      process.environment["MS_NODE_ID"] = process.environment["RANK_ID"] = rank;
      process.environment["DEVICE_ID"] = place.devices[local];
      // MindSpore counts the node's devices, not the visible ones
      process.environment.erase("ASCEND_RT_VISIBLE_DEVICES");
    } else {
      put_torchrun(process.environment, call, place, numbers, local);
    }
    if (wants_local_rank(call))
      process.argv.insert(process.argv.begin() + static_cast<std::ptrdiff_t>(script) + 1,
                          (interpreter.dashed_local_rank ? "--local-rank=" : "--local_rank=") +
                              std::to_string(local));
    processes.push_back(std::move(process));
  }
  return processes;
}

std::string notice(const Call& call, const Place& place) {
  const Numbers numbers = numbers_of(call, place);
  const std::string local = std::to_string(place.devices.size()),
                    nodes = std::to_string(numbers.nodes), node = std::to_string(numbers.node);
  std::string text = "muster: " + std::string(name_of(call.launcher)) + ": ranks " +
                     std::to_string(numbers.first) + ".." +
                     std::to_string(numbers.first + place.devices.size() - 1) + " of " +
                     std::to_string(numbers.world) + ", master " + numbers.master_addr + ":" +
                     place.master_port + ", logs in '" + place.logs + "'";
  const std::array<std::pair<std::string_view, std::string>, 7> ours = {
      {{"nnodes", nodes},
       {"nproc_per_node", local},
       {"worker_num", std::to_string(numbers.world)},
       {"local_worker_num", local},
       {"node_rank", node},
       {"master_addr", numbers.master_addr},
       {"master_port", place.master_port}}};
  std::string replaced;
  for (const auto& [option, value] : ours) {
    const std::string_view given = call.value(option);
    if (given.empty() || given == value || given == "auto" || given == "gpu" || given == "cpu")
      continue;
    replaced += (replaced.empty() ? "" : ", ") + ("--" + std::string(option)) + " " +
                std::string(given) + " -> " + value;
  }
  if (!replaced.empty()) text += "; replaced by the job's placement: " + replaced;
  return text;
}

}  // namespace muster::shim
