#include "client/commands/local/local_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iterator>
#include <optional>
#include <ranges>
#include <string_view>

#include "client/commands/call/call.h"
#include "client/commands/call/local_paths.h"
#include "client/commands/local/local_cards.h"
#include "client/commands/local/local_socket.h"
#include "common/io/file.h"
#include "common/process/cgroup.h"
#include "common/process/pidfd.h"
#include "common/process/process_tag.h"
#include "common/rpc/endpoint_file.h"
#include "common/rundir/layout.h"
#include "common/rundir/records.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Two `local up` or `local down` on one directory exclude each other: the second one fails.
Result<io::UniqueFd> lock_dir(const fs::path& dir) {
  io::UniqueFd fd(::open((dir / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd)
    return fail_errno(fmt::format("locking the private cluster in '{}'", dir.string()), errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::Conflict,
                fmt::format("locking the private cluster in '{}': another 'muster local' is at "
                            "work there; try again when it is done",
                            dir.string()));
  }
  return fd;
}

// Returns all connected nodes.
std::optional<std::vector<v1::Node>> connected_nodes(const Session& session) {
  auto answer =
      ask(session, &Nodes::ListNodes, v1::ListNodesRequest(), nullptr, std::chrono::seconds(1));
  if (!answer) return std::nullopt;
  std::vector<v1::Node> nodes;
  for (auto& node : *answer->mutable_nodes()) {
    if (node.connected()) nodes.push_back(std::move(node));
  }
  return nodes;
}

// The error quotes the last warning or error of each daemon that is missing.
std::unexpected<Error> not_registered(const std::vector<LocalDaemon>& daemons,
                                      const std::vector<LocalDaemon>& missing) {
  constexpr std::size_t kShown = 3;
  std::string text =
      fmt::format("waiting for {} node{} to register: time is up; see '{}'", daemons.size() - 1,
                  daemons.size() == 2 ? "" : "s", daemons.back().log.parent_path().string());
  for (const auto& daemon : missing | std::views::take(kShown)) {
    if (const std::string line = last_complaint(daemon); !line.empty())
      text += fmt::format("\n  {}{}: {}", daemon.name,
                          daemon.node.empty() ? "" : " '" + daemon.node + "'", line);
  }
  return fail(ErrorCode::TimedOut, std::move(text));
}

// Waits until the nodes of `daemons` are connected, by their events. It notices within a second
// that a daemon has died.
Result<std::vector<v1::Node>> wait_registered(const Context& context,
                                              const std::vector<LocalDaemon>& daemons,
                                              Clock::time_point until) {
  std::vector<LocalDaemon> missing = daemons;
  while (Clock::now() < until) {
    if (auto alive = all_up(daemons); !alive) return fail(std::move(alive.error()));
    auto session = context.connect();
    if (session) {
      const auto status = ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest(),
                              nullptr, std::chrono::seconds(1));
      if (status) {
        if (!status->paused().empty())
          return fail(ErrorCode::DataLoss, "waiting for the nodes: " + status->paused());
        if (auto nodes = connected_nodes(*session)) {
          missing.clear();
          std::ranges::copy_if(
              daemons, std::back_inserter(missing), [&](const LocalDaemon& daemon) {
                return !daemon.node.empty() &&
                       std::ranges::find(*nodes, daemon.node, &v1::Node::name) == nodes->end();
              });
          if (missing.empty()) {
            if (auto alive = all_up(daemons); !alive) return fail(std::move(alive.error()));
            return std::move(*nodes);
          }
        }
        // The next event of a registration ends this wait. The deadline keeps it short, so that a
        // dead daemon is noticed.
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
    // There is no endpoint yet: the controller writes it once it listens. Its pidfd reports an
    // early death; otherwise the loop tries again after the time-out.
    auto controller = process::Pidfd::open(daemons.front().process);
    if (controller) {
      pollfd item{.fd = controller->fd(), .events = POLLIN, .revents = 0};
      poll(&item, 1, 20);
    }
  }
  return not_registered(daemons, missing);
}

// A killed daemon owns its state directory until the last of its threads is gone. Before that, a
// new daemon could not lock the directory.
Result<void> wait_for_end(const LocalDaemon& daemon, Clock::time_point until) {
  if (wait_gone({daemon}, until)) return {};
  return fail(ErrorCode::TimedOut,
              fmt::format("starting the {}{}: the earlier one, process {}, was killed and has not "
                          "ended (a stuck disk?); try again when it has",
                          daemon.name, daemon.node.empty() ? "" : " '" + daemon.node + "'",
                          daemon.process.pid));
}

// Names the missing file without which no client finds the controller. Returns an empty text if no
// file is missing.
std::string missing_file(const fs::path& dir) {
  const auto endpoint = rpc::read_endpoint_file(local_endpoint(dir));
  if (!endpoint)
    return endpoint.error().code == ErrorCode::NotFound
               ? fmt::format("its endpoint file '{}' is missing", local_endpoint(dir).string())
               : "";
  constexpr std::string_view kUnix = "unix:";
  if (!endpoint->address.starts_with(kUnix)) return "";
  const std::string socket = endpoint->address.substr(kUnix.size());
  std::error_code error;
  return fs::exists(socket, error) || error ? ""
                                            : fmt::format("its socket '{}' is missing", socket);
}

Result<void> stop_daemons(const fs::path& dir, const std::vector<LocalDaemon>& daemons) {
  signal_all(daemons, SIGTERM);
  if (wait_gone(daemons, Clock::now() + std::chrono::seconds(5))) return {};
  signal_all(daemons, SIGKILL);
  if (wait_gone(daemons, Clock::now() + std::chrono::seconds(5))) return {};
  return fail(ErrorCode::TimedOut,
              fmt::format("stopping the private cluster in '{}': a daemon does not end even by "
                          "SIGKILL (a stuck disk?); see 'muster local status'",
                          dir.string()));
}

// Returns the controller and the agents that `up` asks for. Values that `up` leaves open stay as
// they were. The daemons that were started before have their processes, alive or not.
std::vector<LocalDaemon> plan_daemons(const LocalUp& up, const std::vector<LocalDaemon>& known) {
  constexpr std::uint32_t kNodes = 2;
  constexpr std::uint32_t kDevices = 4;
  std::vector<LocalDaemon> plan = {
      {.name = "controller", .node = "", .log = local_log(up.dir, "controller")}};
  std::uint32_t devices = 0;  // as is, of a new agent
  std::string type;
  const std::optional<std::string> asked_type = up.device_type == "cpu" ? "" : up.device_type;
  const auto add = [&](LocalDaemon agent) {
    if (std::ranges::none_of(plan, [&](const LocalDaemon& other) { return other.same_as(agent); }))
      plan.push_back(std::move(agent));
  };
  for (const auto& daemon : known) {
    if (daemon.node.empty()) continue;
    if (devices == 0) {
      devices = daemon.devices;
      type = daemon.device_type;
    }
    if (!up.nodes) add({.name = "agent", .node = daemon.node, .log = daemon.log});
  }
  if (plan.size() == 1) {
    for (std::uint32_t number = 0; number < up.nodes.value_or(kNodes); ++number) {
      const std::string node = fmt::format("n{}", number);
      add({.name = "agent", .node = node, .log = local_log(up.dir, node)});
    }
  }
  for (auto& daemon : plan) {
    const auto it = std::ranges::find_if(
        known, [&](const LocalDaemon& other) { return other.same_as(daemon); });
    if (it != known.end()) daemon = *it;
    if (daemon.node.empty()) continue;
    if (daemon.devices == 0) daemon.device_type = type;
    if (asked_type && !is_up(daemon)) daemon.device_type = *asked_type;
    if (up.devices && !is_up(daemon)) daemon.devices = *up.devices;
    if (daemon.devices == 0)
      daemon.devices = up.devices.value_or(devices == 0 ? kDevices : devices);
  }
  return plan;
}

// Each agent with stand-ins has an address of its own, because a rank table distinguishes servers
// by it.
Result<std::vector<std::string>> agent_arguments(const fs::path& dir, const LocalDaemon& agent) {
  std::vector<std::string> args = {"--controller", local_endpoint(dir).string(),
                                   "--name",       agent.node,
                                   "--state-dir",  local_agent_dir(dir, agent.node).string()};
  if (agent.device_type.empty()) {
    args.insert(args.end(),
                {"--devices", fmt::format("{}", agent.devices), "--address", "127.0.0.1"});
    return args;
  }
  std::uint32_t number = 0;
  std::from_chars(agent.node.data() + 1, agent.node.data() + agent.node.size(), number);
  const fs::path list = local_cards(dir, agent.node);
  if (auto made = io::make_dirs(list.parent_path(), 0700); !made)
    return fail(std::move(made.error()));
  if (auto written = io::replace_file(
          list, stand_in_cards(agent.device_type, number, agent.devices), io::Durable::No);
      !written)
    return fail(std::move(written.error()));
  args.insert(args.end(), {"--devices-from", list.string(), "--address",
                           fmt::format("127.0.{}.{}", number / 250, number % 250 + 1)});
  return args;
}

Result<std::vector<std::string>> controller_arguments(const LocalUp& up) {
  auto socket = place_local_socket(up.dir);
  if (!socket) return fail(std::move(socket.error()));
  std::vector<std::string> args = {"--state-dir", local_controller_dir(up.dir).string(),
                                   "--endpoint-file", local_endpoint(up.dir).string()};
  args.insert(args.end(), {"--listen", "unix:" + socket->string()});
  args.insert(args.end(), up.controller_args.begin(), up.controller_args.end());
  return args;
}

}  // namespace

Result<LocalNodes> local_up(Context& context, const LocalUp& up,
                            std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  for (const auto& dir :
       {up.dir, local_controller_dir(up.dir), up.dir / "agents", up.dir / "log"}) {
    if (auto made = io::make_dirs(dir, 0700); !made) return fail(std::move(made.error()));
  }
  auto lock = lock_dir(up.dir);
  if (!lock) return fail(std::move(lock.error()));

  std::vector<LocalDaemon> known;
  if (auto found = find_daemons(up.dir)) known = std::move(*found);
  const std::vector<LocalDaemon> plan = plan_daemons(up, known);
  for (const auto& daemon : plan) {
    if (daemon.device_type.empty() || is_up(daemon) || daemon.devices <= kCardsMost) continue;
    return fail(ErrorCode::InvalidArgument,
                fmt::format("starting node '{}' with {} stand-ins for cards of type {}: a node has "
                            "at most {} (--devices)",
                            daemon.node, daemon.devices, daemon.device_type, kCardsMost));
  }
  std::vector<LocalDaemon> running;
  // Written before each start and after it. If 'local up' is interrupted, the next one must find
  // the whole plan; and a full disk must stop it before anything is started. The list also keeps
  // the daemons of an earlier, larger cluster.
  const auto remember = [&] {
    std::vector<LocalDaemon> all = running;
    const auto listed = [&](const LocalDaemon& daemon) {
      return std::ranges::any_of(all,
                                 [&](const LocalDaemon& other) { return other.same_as(daemon); });
    };
    for (const auto& daemon : plan) {
      if (!listed(daemon)) all.push_back(daemon);
    }
    for (const auto& daemon : known) {
      if (!listed(daemon) && process::alive(daemon.process)) all.push_back(daemon);
    }
    return write_daemons(up.dir, all);
  };
  LocalNodes done;
  for (const auto& daemon : plan) {
    const bool controller = daemon.node.empty();
    const std::string missing = controller && is_up(daemon) ? missing_file(up.dir) : "";
    if (is_up(daemon) && missing.empty()) {
      running.push_back(daemon);
      continue;
    }
    if (!missing.empty()) {
      done.note =
          fmt::format("the controller ran, but {}: it was started anew; jobs go on", missing);
      if (auto stopped = stop_daemons(up.dir, {daemon}); !stopped)
        return fail(std::move(stopped.error()));
    }
    if (auto ended = wait_for_end(daemon, until); !ended) return fail(std::move(ended.error()));
    if (auto written = remember(); !written) return fail(std::move(written.error()));
    std::error_code ignored;
    // This is the file of a controller that is gone; no client may find it.
    if (controller) fs::remove(local_endpoint(up.dir), ignored);
    auto args = controller ? controller_arguments(up) : agent_arguments(up.dir, daemon);
    if (!args) return fail(std::move(args.error()));
    auto started = start_daemon(up.dir, controller ? "controller" : "agent", daemon.node,
                                controller ? "controller" : daemon.node, *std::move(args));
    if (!started) return fail(std::move(started.error()));
    started->devices = daemon.devices;
    started->device_type = daemon.device_type;
    running.push_back(std::move(*started));
    if (auto written = remember(); !written) return fail(std::move(written.error()));
  }
  (void)remember();  // running daemons are found without the list
  context.controller = local_endpoint(up.dir).string();
  auto nodes = wait_registered(context, running, until);
  if (!nodes) return fail(std::move(nodes.error()));
  done.nodes = std::move(*nodes);
  return done;
}

std::string local_silence(Context& context, const fs::path& dir) {
  context.controller = local_endpoint(dir).string();
  if (const std::string missing = missing_file(dir); !missing.empty())
    return fmt::format("the controller runs, but {}: 'muster local up' starts it anew; jobs go on",
                       missing);
  const auto session = context.connect();
  if (session && ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest(), nullptr,
                     std::chrono::seconds(3)))
    return "";
  return fmt::format(
      "the controller runs, but does not answer (frozen, overloaded or still starting?); see '{}'",
      local_log(dir, "controller").string());
}

namespace {

// Requests that every live job be cancelled, and waits for their ends, best effort. Returns why not
// all could be requested, or an empty text.
std::string cancel_jobs(const Context& context, Clock::time_point until) {
  constexpr const char* kSilent = "the controller did not answer";
  auto session = context.connect();
  if (!session) return kSilent;
  constexpr std::chrono::seconds kShort(3);
  std::vector<std::string> jobs;
  v1::ListJobsRequest page;
  do {
    const auto answer = ask(*session, &Jobs::ListJobs, page, nullptr, kShort);
    if (!answer) return kSilent;
    for (const auto& job : answer->jobs()) jobs.push_back(job.id());
    page.set_page_token(answer->next_page_token());
  } while (!page.page_token().empty());
  for (const auto& job : jobs) {
    if (Clock::now() >= until) return "time was up";
    v1::CancelJobRequest request;
    request.set_job(job);
    request.set_reason("the private cluster is going down");
    const auto asked = ask(*session, &Jobs::CancelJob, request, nullptr, kShort);
    if (!asked && asked.error().code == ErrorCode::Unreachable) return kSilent;
  }
  for (const auto& job : jobs) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return "";
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
  return "";
}

// Workers survive their agents. This kills the workers that have a claim in a run directory of this
// cluster, then all processes with their process tag.
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
      // If the claim is of another boot, its pid may belong to a stranger now.
      if (claim && *claim && (*claim)->pid() != 0 && (*claim)->boot_id() == boot->str()) {
        if (auto pidfd = process::Pidfd::open(
                {.pid = static_cast<pid_t>((*claim)->pid()), .start_time = (*claim)->start_time()}))
          (void)pidfd->signal(SIGKILL);
      }
      if (!launch || !*launch) continue;
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      process::TagUsers users;
      if ((*launch)->set_user()) users.run = (*launch)->uid();
      auto swept =
          process::sweep_process_tag(rundir::kProcessTagVariable, (*launch)->process_tag(),
                                     static_cast<int>(std::max<std::int64_t>(1000, left)), users);
      if (!swept) return fail(std::move(swept.error()));
      if ((*launch)->cgroup().empty()) continue;
      if (auto gone = process::discard_run_group(
              (*launch)->cgroup(), static_cast<int>(std::max<std::int64_t>(1000, left)));
          !gone)
        return gone;
    }
  }
  return {};
}

}  // namespace

Result<std::string> local_down(Context& context, const fs::path& dir,
                               std::chrono::milliseconds timeout) {
  if (auto found = find_daemons(dir); !found) return fail(std::move(found.error()));
  auto lock = lock_dir(dir);
  if (!lock) return fail(std::move(lock.error()));
  auto daemons = find_daemons(dir);  // again: a 'local up' may have just ended
  if (!daemons) return fail(std::move(daemons.error()));
  context.controller = local_endpoint(dir).string();
  const auto until = Clock::now() + timeout;
  std::vector<LocalDaemon> agents;
  std::vector<LocalDaemon> controller;
  for (const auto& daemon : *daemons) (daemon.node.empty() ? controller : agents).push_back(daemon);
  std::string not_cancelled = "the controller was gone";
  if (std::ranges::any_of(controller, is_up)) {
    not_cancelled = missing_file(dir);
    if (not_cancelled.empty()) not_cancelled = cancel_jobs(context, until);
  }
  // Stop the agents first, so that the controller notices that they leave.
  for (const auto* group : {&agents, &controller}) {
    if (auto stopped = stop_daemons(dir, *group); !stopped) return fail(std::move(stopped.error()));
  }
  if (auto swept = sweep_workers(dir, until); !swept) return fail(std::move(swept.error()));
  std::error_code ignored;
  remove_local_socket(dir);
  fs::remove(local_endpoint(dir), ignored);
  fs::remove(local_processes(dir), ignored);
  return not_cancelled;
}

}  // namespace muster::client
