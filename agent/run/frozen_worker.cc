// Detects a stopped worker (SIGSTOP, a debugger) whose ranks have all ended. It cannot report that
// they ended. The agent would otherwise see only the worker's own end.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/run/host_impl.h"
#include "common/io/file.h"
#include "common/process/identity.h"

namespace muster::agent {
namespace {

// A process that cannot be checked counts as living.
bool has_ended(const process::ProcessId& id) {
  const auto process = process::Pidfd::open(id);
  return process ? process->exited() : process.error().code == ErrorCode::NotFound;
}

// Empty result: it cannot be found out.
std::optional<std::vector<pid_t>> children_of(pid_t pid) {
  const auto text = io::read_file(fmt::format("/proc/{0}/task/{0}/children", pid), 1U << 16U);
  if (!text) return std::nullopt;
  std::vector<pid_t> children;
  for (const char *at = text->data(), *const end = at + text->size(); at < end; ++at) {
    pid_t child = 0;
    const auto [next, error] = std::from_chars(at, end, child);
    if (error == std::errc()) children.push_back(child);
    at = next;
  }
  return children;
}

// Once all ranks have started, the worker's records list them. What a rank left behind may live on
// as a child of the worker. Before that, only the worker's children can be checked.
bool ranks_have_ended(const RunView& view, pid_t worker) {
  if (view.seen().started) {
    std::set<std::uint64_t> ranks;
    for (const auto& [rank, pid] : view.seen().pids) ranks.insert(pid);
    return std::ranges::all_of(view.leaders(), [&](const process::ProcessId& leader) {
      return !ranks.contains(static_cast<std::uint64_t>(leader.pid)) || has_ended(leader);
    });
  }
  const auto children = children_of(worker);
  return children && !children->empty() && std::ranges::all_of(*children, [](pid_t child) {
           const auto id = process::identify(child);
           return id ? has_ended(*id) : id.error().code == ErrorCode::NotFound;
         });
}

bool supervises_nobody_now(const RunView& view) {
  const auto worker = static_cast<pid_t>(view.seen().worker_pid);
  const auto stat = process::read_stat(worker);
  return stat && (stat->state == 'T' || stat->state == 't') && !view.worker()->exited() &&
         ranks_have_ended(view, worker);
}

}  // namespace

void Host::Impl::check_frozen_soon() {
  if (!std::exchange(checking_frozen, true))
    frozen_timer.arm(options.worker_margin, [this] { check_frozen(); });
}

// The worker is killed only after two checks in a row. A process that was stopped only for a moment
// has continued by then.
void Host::Impl::check_frozen() {
  checking_frozen = false;
  for (const auto& [run, entry] : entries) {
    if (entry->worker_killed || entry->seen.worker != WorkerState::Alive ||
        entry->view.worker() == nullptr)
      continue;
    check_frozen_soon();
    const bool now = supervises_nobody_now(entry->view);
    if (std::exchange(entry->supervises_nobody, now) && now)
      kill_worker(run, *entry, "is stopped though its ranks have ended");
  }
}

void Host::Impl::kill_worker(const RunKey& run, Entry& entry, std::string_view why) {
  entry.worker_killed = true;  // its pidfd reports its end
  entry.obey_timer.reset();
  trouble(
      fmt::format("supervising run '{}.{}': its worker, process {}, {}; it is killed, its ranks "
                  "with it (was it frozen by SIGSTOP?)",
                  run.first.str(), run.second.value, entry.seen.worker_pid, why));
  if (auto sent = entry.view.worker()->signal(SIGKILL);
      !sent && sent.error().code != ErrorCode::NotFound) {
    trouble(fmt::format("killing the worker of run '{}.{}': {}", run.first.str(), run.second.value,
                        sent.error().message));
  }
}

}  // namespace muster::agent
