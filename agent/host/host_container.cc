// A run in a container, as Host minds it: what is executed in the worker's place, what an end of
// that without a claim means, and that the container goes with the run.
#include <fmt/format.h>

#include "agent/host/container_tool.h"
#include "agent/host/host_impl.h"
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

// podman stays for as long as its container: its end tells what the worker's own tells outside.
// What both say goes into the worker's log.
void Host::Impl::go_by_container(process::SpawnRequest& request,
                                 const rundir::v1::ContainerLaunch& container) {
  request.path = container.argv(0);
  request.argv.assign(container.argv().begin(), container.argv().end());
  request.env = container_tool_environment();
}

// If a worker was quicker with its claim, it is adopted, whatever has become of podman.
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

// True: under way, the sweep goes on when it has ended. What the container's own groups still hold
// is killed with it.
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
