// muster-agent: main() only connects the parts.
//
// Exit codes: 0 stopped by SIGTERM or SIGINT; 12 a second agent on this state directory; 64 usage;
// 70 every other error that another try cannot correct (including an agent of another cluster);
// 77 the controller refused the join for good.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <optional>
#include <random>

#include "agent/enrol/join.h"
#include "agent/enrol/renewal.h"
#include "agent/loop.h"
#include "agent/options.h"
#include "agent/probe/device_book.h"
#include "agent/probe/fixed_inventory.h"
#include "agent/probe/inventory.h"
#include "common/base/exit_codes.h"
#include "common/base/wall_clock_offset.h"
#include "common/io/descriptor_limit.h"
#include "common/io/file.h"
#include "common/log/log.h"
#include "common/pki/openssl_process.h"
#include "common/process/identity.h"
#include "common/rpc/grpc_log.h"

namespace {

using namespace muster;

constexpr std::size_t kDescriptorsWanted = 256;

int exit_code(const Error& error) {
  if (error.code == ErrorCode::InvalidArgument) return kExitUsage;
  if (error.code == ErrorCode::Conflict) return 12;
  return 70;
}

// The devices that need no tool. Empty result: the devices must be probed.
Result<std::optional<std::vector<agent::probe::Device>>> known_devices(
    const agent::CommandLine& line) {
  agent::probe::ProbeOptions options{.slots = line.devices};
  if (!line.devices && line.devices_from.empty())
    return std::optional<std::vector<agent::probe::Device>>();
  if (!line.devices) {
    const std::string reading = "reading the devices of '" + line.devices_from.string() + "'";
    auto text = io::read_file(line.devices_from, agent::probe::kFixedInventoryBytesMax);
    if (!text) return fail(ErrorCode::InvalidArgument, reading + ": " + text.error().message);
    auto written = agent::probe::parse_fixed_inventory(*text);
    if (!written) return fail(std::move(written).error().in(reading));
    options.fixed = std::move(*written);
  }
  process::ToolRunner none;
  return std::optional(agent::probe::probe_devices(none, options).devices);
}

// The host's tables of names may hang while the machine boots: then they are asked again. Each such
// try takes as long as name_service lets it.
Result<agent::Way> find_way(const std::string& controller) {
  constexpr std::chrono::seconds kHangs(1);
  for (bool reported = false;; reported = true) {
    const auto begin = std::chrono::steady_clock::now();
    auto way = agent::Way::to(controller);
    if (way || std::chrono::steady_clock::now() - begin < kHangs) return way;
    if (!reported) log::warn(way.error().message + "; asking again until there is an answer");
  }
}

// A node that has no credentials yet gets them first. False: a signal ended it.
Result<bool> join_first(const agent::CommandLine& line, const rundir::AgentLayout& layout) {
  std::error_code ignored;
  if (line.join.empty() ||
      std::filesystem::exists(std::filesystem::symlink_status(line.credentials, ignored)))
    return true;
  agent::Cancel cancel;
  async::Loop loop("join");
  async::Signals signals(loop, {SIGTERM, SIGINT}, [&](int) { cancel.request(); });
  auto joined = agent::join_cluster({.enrol = line.enrol,
                                     .token = line.join,
                                     .credentials = line.credentials,
                                     .pending_key = layout.enrol_key(),
                                     .node = line.name.str()},
                                    system_clock(), cancel);
  loop.stop();
  return joined;
}

Result<int> run(const agent::CommandLine& line) {
  auto state = agent::StateDir::open(line.state_dir);
  if (!state) return fail(std::move(state).error());
  if (::access(line.worker.c_str(), X_OK) != 0) {
    return fail(ErrorCode::InvalidArgument,
                "looking for the worker: '" + line.worker.string() +
                    "' is not there or not executable; name it with --worker");
  }
  const auto joined = join_first(line, state->layout());
  if (!joined && joined.error().code == ErrorCode::NotAllowed) {
    log::error(joined.error().message);
    return kExitRefused;
  }
  if (!joined) return fail(Error(joined.error()));
  if (!*joined) return 0;
  auto boot = agent::read_boot_id();
  if (!boot) return fail(std::move(boot).error());
  const auto endpoint = agent::endpoint_source(line);
  std::string controller = line.controller;
  // If the endpoint file does not exist yet, a cluster on this machine is just starting.
  const auto first = endpoint();
  if (first && !first->credentials && !line.credentials.empty())
    log::warn("the credentials are not used: the controller is called over its unix socket",
              {{"credentials", line.credentials.string()}, {"address", first->address}});
  if (line.address.empty()) {
    if (first) controller = first->address;
    if (controller.find(':') == std::string::npos) controller = "unix:" + controller;
  }
  std::optional<agent::Way> way;
  std::string address = line.address;
  if (address.empty()) {
    auto found = find_way(controller);
    if (!found) return fail(std::move(found).error());
    auto local = found->local_address();
    if (!local) return fail(std::move(local).error());
    way = std::move(*found);
    address = std::move(*local);
  }
  auto known = known_devices(line);
  if (!known) return fail(std::move(known).error());
  auto cgroup = agent::choose_cgroup_base(line.cgroup, line.name, state->identity().instance);
  if (!cgroup) return fail(std::move(cgroup).error());
  log::info(cgroup->note);

  const auto own = process::identify(::getpid());
  if (!own) return fail(Error(own.error()));

  const char* own_path = std::getenv("PATH");
  agent::AgentOptions options{
      .host = {.layout = state->layout(),
               .self = {.instance = state->identity().instance, .boot_id = *boot},
               .node = line.name,
               .worker = line.worker,
               .path = own_path == nullptr ? "" : own_path,
               .cgroup_base = cgroup->base,
               .container = line.container,
               .min_free_bytes = line.min_free_bytes},
      .inventory = agent::probe_inventory(
          {.address = address, .address_given = !way, .labels = line.labels}),
      .network =
          [way](v1::Inventory& inventory) {
            agent::read_network(inventory, way ? &*way : nullptr);
          },
      .version = MUSTER_VERSION,
      .cgroup_trouble = cgroup->base ? "" : cgroup->note,
      .incarnation = fmt::format("{}/{}/{}", boot->str(), ::getpid(), own->start_time),
      .endpoint = endpoint};
  if (line.kill_after) {
    options.host.starts.after_step = [step = *line.kill_after](const agent::RunKey&,
                                                               agent::StartStep done) {
      if (done == step) ::kill(::getpid(), SIGKILL);
    };
  }
  if (*known) {
    for (v1::Device& device : agent::probe::to_v1(**known)) {
      options.host.devices.insert(device.id());
      if (device.has_numa_node()) options.host.numa_nodes.emplace(device.id(), device.numa_node());
      *options.inventory.add_devices() = std::move(device);
    }
  } else {
    options.probe = agent::probe::ProbeOptions{.cores = agent::usable_cores()};
    options.probe_interval = line.probe_interval;
  }
  log::info("starting", {{"node", line.name.str()},
                         {"instance", state->identity().instance.str()},
                         {"address", address},
                         {"state", line.state_dir.string()}});

  async::Loop loop("agent");
  std::promise<int> ended;
  bool announced = false;  // used on the loop
  const auto end = [&](int code) {
    if (!announced) ended.set_value(code);
    announced = true;
  };
  options.on_permanent = [&](const Error&) { end(70); };
  async::Signals signals(loop, {SIGTERM, SIGINT}, [&](int) { end(0); });
  const std::filesystem::path pending_key = state->layout().enrol_key();
  std::optional<agent::Renewal> renewal;
  if (!line.enrol.empty() || (!line.credentials.empty() && !rpc::is_unix(controller)))
    renewal.emplace(agent::RenewalOptions{.enrol = line.enrol,
                                          .credentials = line.credentials,
                                          .pending_key = pending_key,
                                          .node = line.name.str(),
                                          .seed = std::random_device{}()},
                    system_clock());
  options.on_authorities = [&renewal](v1::Authorities authorities) {
    if (renewal) renewal->trust(authorities.ca(), authorities.signing());
  };
  options.on_unreached = [&renewal] {
    if (renewal) renewal->unreached();
  };
  agent::Agent agent(loop, std::move(*state), std::move(options));
  Result<int> result = 0;
  if (auto started = agent.start(); started) {
    result = ended.get_future().get();
    log::info(*result == 0
                  ? "leaving on a signal; workers and ranks stay, the next start adopts them"
                  : "leaving; workers and ranks stay");
  } else {
    result = fail(std::move(started).error());
  }
  agent.stop();
  loop.stop();
  renewal.reset();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  pki::prepare_openssl();
  rpc::silence_grpc();
  io::raise_descriptor_limit();
  auto line = agent::parse_command_line(argc, argv);
  if (!line) {
    std::fprintf(stderr, "muster-agent: %s\n", line.error().message.c_str());
    return exit_code(line.error());
  }
  if (!*line) return 0;
  if (const auto offset = wall_clock_offset(); !offset) {
    std::fprintf(stderr, "muster-agent: %s\n", offset.error().message.c_str());
    return exit_code(offset.error());
  }
  if (auto logging = log::set_up({.daemon = "muster-agent",
                                  .level = (*line)->log_level,
                                  .file = (*line)->log_file,
                                  .stderr_to_file = !(*line)->log_file.empty()});
      !logging) {
    std::fprintf(stderr, "muster-agent: %s\n", logging.error().message.c_str());
    return 64;
  }
  if (const std::string missing = io::descriptors_missing(kDescriptorsWanted); !missing.empty())
    log::warn(missing);
  auto result = run(**line);
  if (!result) log::error(result.error().message);
  log::flush();
  return result ? *result : exit_code(result.error());
}
