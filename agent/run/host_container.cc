// The container part of Host: what is executed instead of the worker, and what its end without a
// claim means.
#include <fmt/format.h>

#include "agent/container/container_tool.h"
#include "agent/run/host_impl.h"
#include "common/rundir/run_file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kWorkerLogMost = 1U << 20U;

}  // namespace

// podman stays as long as its container, so its end means the same as the worker's own end outside
// a container. The output of both goes into the worker's log.
void Host::Impl::go_by_container(process::SpawnRequest& request,
                                 const rundir::v1::ContainerLaunch& container) {
  request.path = container.argv(0);
  request.argv.assign(container.argv().begin(), container.argv().end());
  request.env = container_tool_environment();
}

// If a worker was quicker with its claim, it is adopted, whatever has happened to podman.
void Host::Impl::refuse_without_container(const RunKey& run, Entry& entry) {
  const rundir::v1::Launch* launch = entry.view.launch();
  if (launch == nullptr || !launch->has_container() || entry.seen.worker != WorkerState::None ||
      entry.seen.refused)
    return;
  const auto output = rundir::read_file(entry.view.layout().worker_log(), kWorkerLogMost);
  const std::string line = output ? last_output_line(*output) : "";
  refuse(
      run, entry,
      {.why = v1::START_FAILURE_NODE,
       .text = fmt::format(
           "starting container '{}': {} ended before the worker in it had claimed the run{}{}",
           launch->container().name(), launch->container().tool(0), line.empty() ? "" : ": ", line),
       .step = std::string(row_of(StartStep::Spawn).word)});
}

}  // namespace muster::agent
