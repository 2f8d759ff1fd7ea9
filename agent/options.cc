#include "agent/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "agent/core/utf8.h"
#include "agent/probe/inventory.h"
#include "common/base/duration.h"
#include "common/base/label.h"
#include "common/base/names.h"
#include "common/config/checks.h"
#include "common/config/config_file.h"
#include "common/process/cgroup.h"
#include "common/rpc/endpoint_file.h"
#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

// A probe runs about thirty short programs on a node with eight cards. This interval is short
// enough to keep a bad card from the next job, and long enough to cost almost nothing.
constexpr const char* kProbeInterval = "30s";
constexpr Duration kProbeIntervalMost = std::chrono::hours(24);

bool is_file_name(const std::string& controller) {
  return controller.find('/') != std::string::npos && !rpc::is_unix(controller);
}

std::filesystem::path default_state_dir() {
  if (geteuid() == 0) return "/var/lib/muster/agent";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::filesystem::path(state) / "muster/agent";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".local/state/muster/agent";
}

std::filesystem::path next_to_own_binary(const char* name) {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path(name) : own.parent_path() / name;
}

Result<void> complete_enrol(CommandLine& line) {
  if (line.enrol.empty() && line.join.empty()) return {};
  if (line.enrol.empty())
    return fail(ErrorCode::InvalidArgument,
                "--join needs --enrol HOST:PORT, the controller's enrolment port");
  if (rpc::is_unix(line.enrol))
    return fail(ErrorCode::InvalidArgument,
                "--enrol '" + line.enrol + "': the enrolment port is at HOST:PORT");
  if (auto sound = rpc::check_address(line.enrol); !sound)
    return fail(std::move(sound.error()).in("--enrol"));
  if (line.credentials.empty())
    line.credentials = rundir::AgentLayout(line.state_dir).credentials();
  return {};
}

// What choose_cgroup_base() needs, which makes groups there at the start.
Result<void> check_cgroup(const std::string& wanted) {
  if (wanted == "auto" || wanted == "none") return {};
  if (!wanted.starts_with('/'))
    return fail(ErrorCode::InvalidArgument, "give 'auto', 'none' or an absolute directory");
  if (auto sound = process::check_group_parent(wanted); !sound)
    return fail(ErrorCode::InvalidArgument,
                sound.error().message +
                    "; give a directory of a cgroup v2 tree that this user may write, or none");
  return {};
}

// "start:STEP:kill". It is read only from the environment: --help has nothing of it.
Result<std::optional<StartStep>> read_failpoint() {
  const char* text = std::getenv("MUSTER_FAILPOINT");
  if (text == nullptr || *text == '\0') return std::optional<StartStep>();
  constexpr std::string_view kBegin = "start:", kEnd = ":kill";
  std::string_view word = text;
  if (word.starts_with(kBegin) && word.ends_with(kEnd) &&
      word.size() > kBegin.size() + kEnd.size()) {
    word.remove_prefix(kBegin.size());
    word.remove_suffix(kEnd.size());
    if (const auto step = parse_start_step(word)) return step;
  }
  std::string words;
  for (const StartStepRow& row : kStartSteps) {
    if (!words.empty()) words += ", ";
    words += row.word;
  }
  return fail(ErrorCode::InvalidArgument,
              "reading the environment: MUSTER_FAILPOINT='" + as_utf8(text) +
                  "' is not 'start:STEP:kill', where STEP is one of " + words);
}

}  // namespace

Result<std::optional<CommandLine>> parse_command_line(int argc, char** argv) {
  CommandLine line;
  line.state_dir = default_state_dir();
  line.worker = next_to_own_binary("muster-worker");
  std::string name = host_name(), state_dir = line.state_dir.string(),
              worker = line.worker.string(), credentials, join, devices_from,
              probe_interval = kProbeInterval;
  std::vector<std::string> labels;
  std::uint32_t devices = 0;
  CLI::App app{
      "muster-agent: starts, supervises and reports a node's training processes. Ends with "
      "SIGTERM; the processes stay and are adopted by the next start."};
  app.name("muster-agent");
  app.set_version_flag("--version", "muster-agent " MUSTER_VERSION);
  config::ConfigFile file(app);
  app.add_option("--controller", line.controller,
                 "the controller: unix:/path, host:port, or its endpoint file")
      ->envname("MUSTER_CONTROLLER")
      ->check(config::path())
      ->required();
  app.add_option(
         "--credentials", credentials,
         "for host:port: this node's key and certificate (mode 0600), as 'muster cert issue "
         "--node' makes them")
      ->envname("MUSTER_CREDENTIALS")
      ->check(config::path())
      ->type_name("FILE");
  app.add_option(
         "--enrol", line.enrol,
         "the controller's enrolment port, host:port: there this node renews its certificate in "
         "time, and gets its first one with --join; without --credentials they are in the state "
         "directory")
      ->envname("MUSTER_ENROL")
      ->type_name("HOST:PORT");
  app.add_option("--join", join,
                 "a file (mode 0600) with a token of 'muster token create', or - for standard "
                 "input: a node that has no certificate yet joins the cluster with it; later it is "
                 "not read")
      ->envname("MUSTER_JOIN")
      ->check(config::path())
      ->type_name("FILE");
  app.add_option("--name", name, "this node's name in the cluster (default: the host's name)")
      ->envname("MUSTER_NODE_NAME");
  app.add_option("--state-dir", state_dir,
                 "this agent's own directory (default: of root, /var/lib/muster/agent; else "
                 "~/.local/state/muster/agent)")
      ->envname("MUSTER_STATE_DIR")
      ->check(config::path())
      ->type_name("DIR");
  CLI::Option* devices_option =
      app.add_option("--devices", devices,
                     "device slots of type cpu, and no probe for cards (default: the cards that "
                     "npu-smi or nvidia-smi shows, else one a core)")
          ->envname("MUSTER_DEVICES")
          ->check(CLI::Range(0U, 65'536U));
  app.add_option("--devices-from", devices_from,
                 "a file with one device a line, in place of asking the tools: id=0 "
                 "type=ascend910b address=192.1.1.4 ...")
      ->envname("MUSTER_DEVICES_FROM")
      ->check(config::path())
      ->excludes(devices_option);
  app.add_option("--probe-interval", probe_interval,
                 "time between probes of the health of devices, as 30s; 0: they are probed once")
      ->envname("MUSTER_PROBE_INTERVAL")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--address", line.address,
                 "training address of this node (default: of the interface towards the controller, "
                 "or to a job's other nodes)")
      ->envname("MUSTER_ADDRESS");
  app.add_option("--label", labels,
                 "key=value, may be repeated; MUSTER_LABELS: separated by commas")
      ->envname("MUSTER_LABELS")
      ->delimiter(',');
  app.add_option("--worker", worker, "the muster-worker binary (default: next to muster-agent)")
      ->envname("MUSTER_WORKER")
      ->check(config::path())
      ->type_name("FILE");
  app.add_option("--cgroup", line.cgroup,
                 "auto, none, or a writable cgroup v2 directory for the runs")
      ->envname("MUSTER_CGROUP")
      ->check(config::path())
      ->capture_default_str();
  app.add_option("--container-tool", line.container.tool,
                 "what runs jobs with runtime.image: a path, or a name on PATH (default: podman, "
                 "else docker)")
      ->envname("MUSTER_CONTAINER_TOOL")
      ->check(config::path());
  app.add_option(
      "--container-arg", line.container.args,
      "--container-arg=--runtime=runc: an argument before the tool's verb, may be repeated");
  app.add_option("--min-free", line.min_free_bytes,
                 "bytes that a run's disks must have free before it starts (below 256 MiB, logs "
                 "lose their oldest bytes)")
      ->envname("MUSTER_MIN_FREE")
      ->check(config::size())
      ->capture_default_str();
  app.add_option("--log-file", line.log_file,
                 "lines, and all else that would go to stderr, go into this file; at 64 MiB of "
                 "lines it is turned over, and three old ones are kept")
      ->envname("MUSTER_LOG_FILE")
      ->check(config::path());
  app.add_option("--log-level", line.log_level, "debug, info, warn, error or off")
      ->envname("MUSTER_LOG_LEVEL")
      ->capture_default_str()
      ->check(config::one_of({"debug", "info", "warn", "error", "off"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::optional<CommandLine>();
  } catch (const CLI::CallForVersion&) {
    std::puts("muster-agent " MUSTER_VERSION);
    return std::optional<CommandLine>();
  } catch (const config::CallForSample&) {
    std::fputs(file.sample().c_str(), stdout);
    return std::optional<CommandLine>();
  } catch (const CLI::ParseError& error) {
    if (std::string text = file.explain(error); !text.empty())
      return fail(ErrorCode::InvalidArgument, std::move(text));
    return fail(ErrorCode::InvalidArgument, std::string("reading the command line: ") +
                                                error.what() +
                                                "; muster-agent --help lists what there is");
  }
  // Of a value that is checked here: where it is from.
  const auto reading = [&file](const char* option) {
    const std::string place = file.place_of(option);
    return place.empty() ? std::string("reading the command line: ") : place;
  };
  if (!is_node_name(name)) {
    return fail(ErrorCode::InvalidArgument, reading("--name") + "'" + name +
                                                "' is not a node name: letters, digits, '.', '_', "
                                                "'-', at most 63, the first a letter or digit; "
                                                "give one with --name");
  }
  if (!is_utf8(line.address))
    return fail(ErrorCode::InvalidArgument, reading("--address") + "--address '" +
                                                as_utf8(line.address) + "' is not UTF-8 text");
  for (const std::string& text : labels) {
    auto label = parse_label(text);
    if (!label) {
      label.error().message.insert(0, file.place_of("--label"));
      return fail(std::move(label).error());
    }
    line.labels[label->first] = label->second;
  }
  if (!is_file_name(line.controller)) {
    if (auto sound = rpc::check_address(line.controller); !sound)
      return fail(std::move(sound).error().in(reading("--controller") + "--controller"));
  }
  if (auto sound = check_cgroup(line.cgroup); !sound)
    return fail(
        std::move(sound.error()).in(reading("--cgroup") + "--cgroup '" + line.cgroup + "'"));
  line.name = NodeName(name);
  line.state_dir = state_dir;
  line.worker = std::filesystem::absolute(worker);
  line.credentials = credentials;
  line.join = join;
  if (auto sound = complete_enrol(line); !sound)
    return fail(std::move(sound.error()).in("reading the command line"));
  if (devices_option->count() > 0) line.devices = devices;
  line.devices_from = devices_from;
  auto interval = parse_duration(probe_interval);
  if (!interval)
    return fail(std::move(interval.error()).in(reading("--probe-interval") + "--probe-interval"));
  if (*interval > kProbeIntervalMost)
    return fail(ErrorCode::InvalidArgument, reading("--probe-interval") + "--probe-interval '" +
                                                probe_interval + "': at most 24h");
  line.probe_interval = *interval;
  auto failpoint = read_failpoint();
  if (!failpoint) return fail(std::move(failpoint).error());
  line.kill_after = *failpoint;
  if (file.check_only()) {
    std::fputs(file.nothing_wrong().c_str(), stdout);
    return std::optional<CommandLine>();
  }
  return std::optional(std::move(line));
}

std::function<Result<rpc::Endpoint>()> endpoint_source(const CommandLine& command_line) {
  return [controller = command_line.controller, credentials = command_line.credentials,
          node = command_line.name]() -> Result<rpc::Endpoint> {
    auto endpoint = is_file_name(controller) ? rpc::load_endpoint(controller, credentials)
                                             : rpc::endpoint_at(controller, credentials);
    if (!endpoint || !endpoint->credentials) return endpoint;
    // The controller would refuse them, too, and with a sentence that has no file.
    if (const pki::Identity& owner = endpoint->credentials->identity;
        owner.role != pki::Role::Node || owner.name != node.str()) {
      const std::string file = credentials.string();
      return fail(ErrorCode::NotAllowed,
                  "the credentials of '" + file + "' are of " + pki::text_of(owner) +
                      "; an agent needs those of node '" + node.str() +
                      "': on the controller's machine, muster cert issue --node " + node.str() +
                      " -o new-" + node.str() + ".pem makes them");
    }
    return endpoint;
  };
}

}  // namespace muster::agent
