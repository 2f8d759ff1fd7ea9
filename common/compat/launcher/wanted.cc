#include "common/compat/launcher/wanted.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace muster::launcher {
namespace {

constexpr std::uint32_t kMsrunWorkers = 8;  // msrun's default of both numbers

constexpr auto kPlaced = std::to_array<std::string_view>(
    {"node_rank", "master_addr", "master_port", "local_addr", "hostname", "rdzv_backend",
     "rdzv_endpoint", "rdzv_id", "rdzv_conf", "standalone"});
// The options that the functions below read.
constexpr auto kRead = std::to_array<std::string_view>(
    {"nnodes", "nproc_per_node", "module", "no_python", "run_path", "use_env", "worker_num",
     "local_worker_num", "rank_table_file", "cluster_time_out"});

std::unexpected<Error> wrong(const Call& call, std::string_view what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("{}: {}", name_of(call.launcher), what));
}

std::optional<std::uint32_t> count_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

void name_others(const Call& call, Wanted& wanted) {
  for (const auto& [name, value] : call.options) {
    if (std::ranges::find(kRead, name) != kRead.end()) continue;
    auto& list = std::ranges::find(kPlaced, name) != kPlaced.end() ? wanted.placed : wanted.idle;
    list.push_back(fmt::format("--{}{}{}", name, value.empty() ? "" : " ", value));
  }
}

Result<std::uint32_t> nodes_of(const Call& call) {
  const std::string_view text = call.value("nnodes");
  if (text.empty() || call.has("standalone")) return 1;
  const std::size_t colon = text.find(':');
  const auto least = count_of(text.substr(0, colon)),
             most = colon == std::string_view::npos ? least : count_of(text.substr(colon + 1));
  if (!least || !most || *most < *least)
    return wrong(call, fmt::format("--nnodes '{}': not a number of nodes", text));
  if (*least != *most)
    return wrong(call,
                 fmt::format("--nnodes {} lets the number of nodes change while the job runs, "
                             "which muster does not: a job keeps the number that it was given, and "
                             "waits for a node that is gone or takes another; write one number, "
                             "--nnodes {}",
                             text, *most));
  return *least;
}

Result<void> read_torch(const Call& call, Wanted& wanted) {
  const auto nodes = nodes_of(call);
  if (!nodes) return fail(nodes.error());
  wanted.nodes = *nodes;
  constexpr auto kWords = std::to_array<std::string_view>({"auto", "gpu", "cpu", "xpu", "npu"});
  const std::string_view processes =
      call.has("nproc_per_node") ? call.value("nproc_per_node") : "1";
  wanted.processes = count_of(processes);
  if (!wanted.processes && std::ranges::find(kWords, processes) == kWords.end())
    return wrong(call, fmt::format("--nproc_per_node '{}': not a number of processes", processes));
  if (call.has("run_path")) return {};
  if (call.has("module")) wanted.kind = Wanted::Kind::Module;
  if (call.has("no_python")) wanted.kind = Wanted::Kind::Program;
  return {};
}

bool is_python(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);  // npos + 1 is 0
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

Result<void> read_msrun(const Call& call, Wanted& wanted) {
  std::uint32_t workers = kMsrunWorkers, local = kMsrunWorkers;
  for (const auto& [name, into] :
       {std::pair("worker_num", &workers), std::pair("local_worker_num", &local)}) {
    if (!call.has(name)) continue;
    const auto number = count_of(call.value(name));
    if (!number)
      return wrong(call, fmt::format("--{} '{}': not a number of workers", name, call.value(name)));
    *into = *number;
  }
  if (!call.has("local_worker_num")) local = std::min(local, workers);
  if (workers % local != 0)
    return wrong(call, fmt::format("--worker_num {} is not a whole number of nodes with "
                                   "--local_worker_num {} each; nodes of a job have equally many",
                                   workers, local));
  wanted.nodes = workers / local;
  wanted.processes = local;
  if (is_python(wanted.program.front()) && wanted.program.size() > 1 &&
      !wanted.program[1].starts_with('-')) {
    wanted.interpreter = wanted.program.front();
    wanted.program.erase(wanted.program.begin());
  } else if (!wanted.program.front().ends_with(".py")) {
    wanted.kind = Wanted::Kind::Program;
  }
  return {};
}

}  // namespace

Result<Wanted> wanted_of(const Call& call) {
  Wanted wanted;
  wanted.program = call.program;
  name_others(call, wanted);
  if (auto read =
          call.launcher == Launcher::Msrun ? read_msrun(call, wanted) : read_torch(call, wanted);
      !read)
    return fail(std::move(read.error()));
  return wanted;
}

}  // namespace muster::launcher
