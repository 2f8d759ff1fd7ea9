#include "client/commands/local_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/un.h>

#include <algorithm>
#include <csignal>

#include "client/commands/call.h"
#include "client/commands/local_paths.h"
#include "common/io/file.h"
#include "common/process/cgroup.h"
#include "common/process/cookie.h"
#include "common/process/pidfd.h"
#include "common/rundir/layout.h"
#include "common/rundir/records.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Two `local up` or `local down` on one directory wait for each other.
Result<io::UniqueFd> lock_dir(const fs::path& dir) {
  io::UniqueFd fd(::open((dir / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(fmt::format("locking the private cluster in '{}'", dir.string()), errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::Conflict,
                fmt::format("locking the private cluster in '{}': another 'muster local' is at work there; try again when it is done", dir.string()));
  }
  return fd;
}

// All connected nodes, once those of `daemons` are among them.
std::optional<std::vector<v1::Node>> connected_nodes(const Session& session, const std::vector<LocalDaemon>& daemons) {
  auto answer = ask(session, &Nodes::ListNodes, v1::ListNodesRequest(), nullptr, std::chrono::seconds(1));
  if (!answer) return std::nullopt;
  std::vector<v1::Node> nodes;
  for (auto& node : *answer->mutable_nodes()) {
    if (node.connected()) nodes.push_back(std::move(node));
  }
  const auto there = [&](const LocalDaemon& daemon) { return daemon.node.empty() || std::ranges::find(nodes, daemon.node, &v1::Node::name) != nodes.end(); };
  if (!std::ranges::all_of(daemons, there)) return std::nullopt;
  return nodes;
}

// Waits until the nodes of `daemons` are connected, by the events that say so; daemons that die are noticed within a second.
Result<std::vector<v1::Node>> wait_registered(const Context& context, const std::vector<LocalDaemon>& daemons, Clock::time_point until) {
  while (Clock::now() < until) {
    if (auto alive = all_up(daemons); !alive) return fail(std::move(alive.error()));
    auto session = context.connect();
    if (session) {
      const auto status = ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest(), nullptr, std::chrono::seconds(1));
      if (status) {
        if (auto nodes = connected_nodes(*session, daemons)) return std::move(*nodes);
        // Something will register: its event ends this wait; the deadline bounds it, so that a dead daemon is noticed.
        grpc::ClientContext watch;
        session->prepare(watch, std::chrono::milliseconds(300));
        v1::WatchRequest request;
        request.set_from_index(status->journal_index());
        auto stream = session->jobs->Watch(&watch, request);
        v1::WatchResponse news;
        if (stream->Read(&news)) watch.TryCancel();
        (void)stream->Finish();
        continue;
      }
    }
    // No endpoint yet: the controller writes it once it listens. Its pidfd tells of an early death, the time-out looks again.
    auto controller = process::Pidfd::open(daemons.front().process);
    if (controller) {
      pollfd item{.fd = controller->fd(), .events = POLLIN, .revents = 0};
      poll(&item, 1, 20);
    }
  }
  return fail(ErrorCode::TimedOut, fmt::format("waiting for {} node{} to register: time is up; see '{}'", daemons.size() - 1, daemons.size() == 2 ? "" : "s",
                                               daemons.back().log.parent_path().string()));
}

// One that was killed holds its state directory until the last of its threads is gone; a new one would be refused it. False.
Result<bool> wait_for_end(const LocalDaemon& daemon, Clock::time_point until) {
  if (wait_gone({daemon}, until)) return false;
  return fail(ErrorCode::TimedOut,
              fmt::format("starting the {}{}: the earlier one, process {}, was killed and has not ended (a stuck disk?); try again when it has", daemon.name,
                          daemon.node.empty() ? "" : " '" + daemon.node + "'", daemon.process.pid));
}

std::string node_name(std::uint32_t number) { return fmt::format("n{}", number); }

}  // namespace

Result<std::vector<v1::Node>> local_up(Context& context, const LocalUp& up, std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  for (const auto& dir : {up.dir, local_controller_dir(up.dir), up.dir / "agents", up.dir / "log"}) {
    if (auto made = io::make_dirs(dir, 0700); !made) return fail(std::move(made.error()));
  }
  auto lock = lock_dir(up.dir);
  if (!lock) return fail(std::move(lock.error()));

  std::vector<LocalDaemon> known;
  if (auto read = read_daemons(up.dir)) known = std::move(*read);
  std::vector<LocalDaemon> running;
  // After each start: who is stopped half way must be found by the next 'local up' or 'local down'. So must the daemons of an earlier, larger cluster.
  const auto remember = [&] {
    std::vector<LocalDaemon> all = running;
    for (const auto& daemon : known) {
      const bool listed = std::ranges::any_of(running, [&](const LocalDaemon& other) { return other.name == daemon.name && other.node == daemon.node; });
      if (!listed && process::alive(daemon.process)) all.push_back(daemon);
    }
    return write_daemons(up.dir, all);
  };
  // True: it runs, and is in `running` now. False: nothing of an earlier one is left.
  const auto adopt = [&](const std::string& name, const std::string& node) -> Result<bool> {
    const auto it = std::ranges::find_if(known, [&](const LocalDaemon& daemon) { return daemon.name == name && daemon.node == node; });
    if (it == known.end()) return false;
    if (!is_up(*it)) return wait_for_end(*it, until);
    running.push_back(*it);
    return true;
  };
  const fs::path endpoint = local_endpoint(up.dir);
  auto adopted = adopt("controller", "");
  if (!adopted) return fail(std::move(adopted.error()));
  if (!*adopted) {
    std::error_code ignored;
    fs::remove(endpoint, ignored);  // of a controller that is gone: nobody must find it
    const std::string socket = local_socket(up.dir).string();
    std::vector<std::string> args = {"--state-dir", local_controller_dir(up.dir).string(), "--endpoint-file", endpoint.string()};
    if (socket.size() < sizeof(sockaddr_un::sun_path) - 1) {
      args.insert(args.end(), {"--listen", "unix:" + socket});
    } else {
      args.insert(args.end(), {"--listen", "127.0.0.1:0", "--token-file", (local_controller_dir(up.dir) / "token").string()});
    }
    args.insert(args.end(), up.controller_args.begin(), up.controller_args.end());
    auto started = start_daemon(up.dir, "controller", "", "controller", std::move(args));
    if (!started) return fail(std::move(started.error()));
    running.push_back(std::move(*started));
    if (auto written = remember(); !written) return fail(std::move(written.error()));
  }
  for (std::uint32_t number = 0; number < up.nodes; ++number) {
    const std::string node = node_name(number);
    adopted = adopt("agent", node);
    if (!adopted) return fail(std::move(adopted.error()));
    if (*adopted) continue;
    auto started = start_daemon(up.dir, "agent", node, node,
                                {"--controller", endpoint.string(), "--name", node, "--state-dir", local_agent_dir(up.dir, node).string(), "--devices",
                                 fmt::format("{}", up.devices), "--address", "127.0.0.1"});
    if (!started) return fail(std::move(started.error()));
    running.push_back(std::move(*started));
    if (auto written = remember(); !written) return fail(std::move(written.error()));
  }
  context.controller = endpoint.string();
  return wait_registered(context, running, until);
}

namespace {

// Asks that every live job be cancelled and waits for the ends. Best effort: the daemons may be gone already.
void cancel_jobs(const Context& context, Clock::time_point until) {
  auto session = context.connect();
  if (!session) return;
  constexpr std::chrono::seconds kShort(3);
  std::vector<std::string> jobs;
  v1::ListJobsRequest page;
  do {
    const auto answer = ask(*session, &Jobs::ListJobs, page, nullptr, kShort);
    if (!answer) break;
    for (const auto& job : answer->jobs()) jobs.push_back(job.id());
    page.set_page_token(answer->next_page_token());
  } while (!page.page_token().empty());
  for (const auto& job : jobs) {
    if (Clock::now() >= until) return;
    v1::CancelJobRequest request;
    request.set_job(job);
    request.set_reason("the private cluster is going down");
    (void)ask(*session, &Jobs::CancelJob, request, nullptr, kShort);
  }
  for (const auto& job : jobs) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return;
    grpc::ClientContext call;
    session->prepare(call, left);
    v1::WatchRequest request;
    request.set_job(job);
    request.set_until_final(true);
    auto stream = session->jobs->Watch(&call, request);
    v1::WatchResponse response;
    while (stream->Read(&response)) {
    }
    (void)stream->Finish();
  }
}

// Workers outlive agents: those whose claim stands in a run directory of this cluster are killed, then all that carries their cookie.
Result<void> sweep_workers(const fs::path& dir, Clock::time_point until) {
  const auto boot = process::boot_id();
  if (!boot) return fail(boot.error());
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir / "agents", ignored)) {
    const rundir::AgentLayout agent(entry.path());
    auto runs = rundir::list_runs(agent);
    if (!runs) continue;
    for (const auto& run : *runs) {
      const rundir::RunLayout layout(agent.run(run.job, run.attempt));
      const auto claim = rundir::read_claim(layout);
      const auto launch = rundir::read_launch(layout);
      if (claim && *claim && (*claim)->pid() != 0 && (*claim)->boot_id() == boot->str()) {  // of another boot: its numbers are a stranger's now
        if (auto pidfd = process::Pidfd::open({.pid = static_cast<pid_t>((*claim)->pid()), .start_time = (*claim)->start_time()})) (void)pidfd->signal(SIGKILL);
      }
      if (!launch || !*launch) continue;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      auto swept = process::sweep_cookie(rundir::kCookieVariable, (*launch)->cookie(), static_cast<int>(std::max<std::int64_t>(1000, left)));
      if (!swept) return fail(std::move(swept.error()));
      if ((*launch)->cgroup().empty()) continue;
      if (auto gone = process::discard_run_group((*launch)->cgroup(), static_cast<int>(std::max<std::int64_t>(1000, left))); !gone) return gone;
    }
  }
  return {};
}

}  // namespace

Result<void> local_down(Context& context, const fs::path& dir, std::chrono::milliseconds timeout) {
  auto daemons = read_daemons(dir);
  if (!daemons) return fail(std::move(daemons.error()));
  auto lock = lock_dir(dir);
  if (!lock) return fail(std::move(lock.error()));
  context.controller = local_endpoint(dir).string();
  const auto until = Clock::now() + timeout;
  if (!daemons->empty() && process::alive(daemons->front().process)) cancel_jobs(context, until);

  std::vector<LocalDaemon> agents;
  std::vector<LocalDaemon> controller;
  for (const auto& daemon : *daemons) (daemon.node.empty() ? controller : agents).push_back(daemon);
  for (const auto* group : {&agents, &controller}) {  // agents first: the controller hears them leave
    signal_all(*group, SIGTERM);
    if (!wait_gone(*group, Clock::now() + std::chrono::seconds(5))) {
      signal_all(*group, SIGKILL);
      if (!wait_gone(*group, Clock::now() + std::chrono::seconds(5)))
        return fail(ErrorCode::TimedOut,
                    fmt::format("stopping the private cluster in '{}': a daemon does not end even by SIGKILL (a stuck disk?); see 'muster local status'",
                                dir.string()));
    }
  }
  if (auto swept = sweep_workers(dir, until); !swept) return swept;
  std::error_code ignored;
  fs::remove(local_endpoint(dir), ignored);
  fs::remove(local_socket(dir), ignored);
  fs::remove(local_processes(dir), ignored);
  return {};
}

}  // namespace muster::client
