// The container part of Host: what is executed instead of the worker, what its end without a claim
// means, and how the container is removed with the run.
#include <fmt/format.h>

#include "agent/container/container_tool.h"
#include "agent/run/host_impl.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kWorkerLogMost = 1U << 20U;

}  // namespace

std::string Host::setup_text(const RunKey& run) const {
  const Entry* entry = impl_->find(run);
  const std::string text =
      entry == nullptr || entry->image_news == nullptr ? std::string() : entry->image_news->text();
  return text.empty() ? text : "runtime.image: " + text;
}

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
  const auto output = io::read_regular_file(entry.view.layout().worker_log(), kWorkerLogMost);
  const std::string line = output ? last_output_line(*output) : "";
  refuse(
      run, entry, v1::START_FAILURE_NODE,
      fmt::format(
          "starting container '{}': {} ended before the worker in it had claimed the run{}{}",
          launch->container().name(), launch->container().tool(0), line.empty() ? "" : ": ", line));
}

// Returns true if the removal is in progress; the sweep continues after it. The removal kills what
// is still in the container's own groups.
bool Host::Impl::begin_removal(const RunKey& run, Entry& entry) {
  const rundir::v1::Launch* launch = entry.view.launch();
  if (launch == nullptr || !launch->has_container() || entry.container_removed) return false;
  auto removal =
      ContainerRemoval::start(loop, launch->container(),
                              [this, run](const std::string& met) { removed_container(run, met); });
  if (!removal) {
    trouble(fmt::format("removing container '{}': {}; no process of its run is left",
                        launch->container().name(), removal.error().message));
    entry.container_removed = true;
    return false;
  }
  entry.removal = std::move(*removal);
  return true;
}

void Host::Impl::removed_container(const RunKey& run, const std::string& trouble_met) {
  Entry* entry = find(run);
  if (entry == nullptr) return;
  if (!trouble_met.empty() && entry->view.launch() != nullptr)
    trouble(fmt::format("removing container '{}': {}; no process of its run is left",
                        entry->view.launch()->container().name(), trouble_met));
  entry->container_removed = true;
  const std::unique_ptr<ContainerRemoval> ended = std::move(entry->removal);
  begin_sweep(run, *entry);
}

}  // namespace muster::agent
