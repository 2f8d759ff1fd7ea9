#include "controller/config.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "common/base/duration.h"
#include "common/base/host_port.h"
#include "common/config/checks.h"
#include "common/config/config_file.h"
#include "common/rpc/channel.h"
#include "controller/access_setup.h"
#include "controller/core/core.h"

namespace muster::controller {
namespace {

constexpr int kUsage = 64;
constexpr std::size_t kOutputsRootMost = 1'024;  // characters; programs have to live with the path

constexpr const char* kAbout =
    "muster-controller: decides which job runs where, and remembers it.\n"
    "\n"
    "One a cluster. Everything it knows is below its state directory; started again on the same "
    "one it goes on where it was, whatever killed it,\n"
    "and no training process notices. Agents and clients find it by its address, or by the "
    "endpoint file on this machine.";

constexpr const char* kFooter =
    "Examples:\n"
    "  muster-controller --state-dir ~/.muster/controller                         private, over a "
    "unix socket\n"
    "  muster-controller --state-dir /var/lib/muster --listen 0.0.0.0:7070        also over "
    "TLS, for other machines\n"
    "  muster-controller --config /etc/muster/controller.yaml --check-config      options from a "
    "file\n"
    "  muster-controller --dump /var/lib/muster                                   what is in a "
    "journal, as text\n"
    "\n"
    "Exit status: 0 stopped by SIGTERM or SIGINT, 64 wrong usage, 70 cannot go on (the last line "
    "says why).";

}  // namespace

std::string_view version() { return MUSTER_VERSION; }

Result<std::pair<std::uint16_t, std::uint16_t>> parse_port_range(std::string_view text) {
  unsigned first = 0, last = 0;
  const char* const end = text.data() + text.size();
  const auto [middle, error] = std::from_chars(text.data(), end, first);
  if (error == std::errc() && middle != end && *middle == '-') {
    const auto [rest, error_last] = std::from_chars(middle + 1, end, last);
    if (error_last == std::errc() && rest == end && first >= 1'024 && first <= last &&
        last <= 65'535) {
      return std::pair{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
    }
  }
  return fail(ErrorCode::InvalidArgument,
              "port range '" + std::string(text) + "': give FIRST-LAST, 1024..65535");
}

namespace {

// A certificate, a node's or a user's, is of use only there.
Result<void> check_serves_tcp(const Config& config, const std::string& doing) {
  if (!std::ranges::all_of(config.listen, rpc::is_unix)) return {};
  return fail(ErrorCode::InvalidArgument,
              doing +
                  ": the certificates from there are for calls over TCP, and there are none; give "
                  "--listen HOST:PORT, too");
}

bool is_wildcard(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

// One address cannot have both sockets, as far as the texts tell. Port 0 is another one each time.
bool excludes(const HostPort& one, const HostPort& other) {
  return one.port != 0 && one.port == other.port &&
         (one.host == other.host || is_wildcard(one.host) || is_wildcard(other.host));
}

Result<void> check_enrol(const Config& config) {
  if (config.enrol.empty()) return {};
  const std::string doing = "--enrol '" + config.enrol + "'";
  if (rpc::is_unix(config.enrol))
    return fail(ErrorCode::InvalidArgument,
                doing + ": nodes that join come over TCP; give HOST:PORT");
  if (auto sound = rpc::check_address(config.enrol); !sound)
    return fail(std::move(sound.error()).in("--enrol"));
  if (auto serves = check_serves_tcp(config, doing); !serves) return serves;
  for (const std::string& address : config.listen) {
    if (rpc::is_unix(address)) continue;
    if (excludes(*parse_host_port(config.enrol), *parse_host_port(address)))
      return fail(
          ErrorCode::InvalidArgument,
          doing + ": --listen '" + address + "' takes the same port; give one of them another one");
  }
  return {};
}

Result<void> check_login_socket(const Config& config) {
  if (config.login_socket.empty()) return {};
  const std::string doing = "--login-socket '" + config.login_socket + "'";
  if (auto sound = rpc::check_address("unix:" + config.login_socket); !sound)
    return fail(ErrorCode::InvalidArgument, doing + ": give an absolute path of at most 107 bytes");
  const auto state = (config.state_dir / "").string();
  if (config.login_socket.starts_with(state))
    return fail(ErrorCode::InvalidArgument,
                doing +
                    ": only the controller's user gets into the state directory; choose a path "
                    "that every user reaches, as /run/muster/login.sock");
  return check_serves_tcp(config, doing);
}

// The path is the same text on every node, so it must not depend on where the controller is
// started.
Result<void> complete_root(std::filesystem::path& root, std::string_view option) {
  if (root.empty()) return {};
  const std::string given = root.string();
  const bool plain = std::ranges::none_of(
      given, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (given.starts_with('/') && plain && given.size() <= kOutputsRootMost) {
    root = root.lexically_normal();
    if (!root.has_filename()) root = root.parent_path();
    if (root.has_relative_path()) return {};
  }
  return fail(ErrorCode::InvalidArgument,
              fmt::format("{} '{}': give an absolute path of at most {} plain "
                          "characters, below '/', that is the same on every node",
                          option, plain ? given : "...", kOutputsRootMost));
}

// Callers of this machine use the socket; over TCP they would need certificates.
Result<void> complete_listen(Config& config) {
  for (const std::string& address : config.listen) {
    if (auto sound = rpc::check_address(address); !sound) return sound;
  }
  if (std::ranges::any_of(config.listen, rpc::is_unix)) return {};
  config.listen.push_back("unix:" + (config.state_dir / "controller.sock").string());
  auto sound = rpc::check_address(config.listen.back());
  if (sound) return {};
  return fail(ErrorCode::InvalidArgument,
              sound.error().message +
                  " (--state-dir), or name another socket with --listen "
                  "unix:/run/muster/controller.sock");
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  Config& config = line.config;
  std::string archive_after = "10m", archive_keep = "90d", heartbeat_interval = "1s",
              port_range = "20000-29999";
  CLI::App app(kAbout, "muster-controller");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string(version()));
  config::ConfigFile file(app);
  const auto option = [&](const char* flag, auto& value, const char* variable, const char* help) {
    return app.add_option(flag, value, help)->envname(variable);
  };
  option("--state-dir", config.state_dir, "MUSTER_CONTROLLER_STATE_DIR",
         "Directory of journal, logs and outputs; made with mode 0700 where missing. Required")
      ->type_name("DIR")
      ->check(config::path());
  option(
      "--listen", config.listen, "MUSTER_CONTROLLER_LISTEN",
      "Address to serve, repeatable: unix:/path or host:port (port 0: a free one). Over TCP there "
      "is TLS, and callers need a certificate ('muster cert issue'). Without a unix socket, "
      "unix:STATE_DIR/controller.sock is served as well")
      ->type_name("ADDRESS");
  option("--enrol", config.enrol, "MUSTER_CONTROLLER_ENROL",
         "A second port, for nodes that have no certificate yet, or whose certificate is to be "
         "renewed: HOST:PORT (port 0: a free one). There a node joins with a token ('muster token "
         "create'), and a user logs in with one. Needs --listen HOST:PORT. Default: none")
      ->type_name("HOST:PORT");
  option("--login-socket", config.login_socket, "MUSTER_CONTROLLER_LOGIN_SOCKET",
         "A unix socket for every user of this machine: there 'muster login' gives a user a "
         "certificate of the own name, without a token. 'muster login' looks at "
         "/run/muster/login.sock. Needs --listen HOST:PORT. Default: none")
      ->type_name("PATH");
  option("--endpoint-file", config.endpoint_file, "MUSTER_CONTROLLER_ENDPOINT_FILE",
         "Where to write the address for clients and agents on this machine. Default "
         "STATE_DIR/endpoint.json")
      ->type_name("FILE")
      ->check(config::path());
  option("--access", config.access_file, "MUSTER_CONTROLLER_ACCESS",
         "YAML file that gives users their roles: viewer, user, operator, admin. Read at the start "
         "and at SIGHUP. Without it every user with a certificate is 'user'")
      ->type_name("FILE")
      ->check(config::path());
  option("--secrets-key", config.secrets_key, "MUSTER_CONTROLLER_SECRETS_KEY",
         "The key that users' secrets are encrypted with, a file of mode 600, made at the first "
         "start. Without it no secret in a copy of the state directory can be read. Default "
         "STATE_DIR/secrets.key")
      ->type_name("FILE")
      ->check(config::path());
  option("--outputs-root", config.outputs_root, "MUSTER_CONTROLLER_OUTPUTS_ROOT",
         "Directory, the same on every node, for outputs and checkpoints of jobs that name none "
         "(outputs.dir): best on storage that all nodes share. Jobs of before keep theirs. Default "
         "STATE_DIR/outputs")
      ->type_name("DIR")
      ->check(config::path());
  option("--inputs-root", config.inputs_root, "MUSTER_CONTROLLER_INPUTS_ROOT",
         "Directory, the same on every node, where nodes keep the inputs that they fetch from "
         "stores: best on a large disk of the node's own. Default STATE_DIR/inputs")
      ->type_name("DIR")
      ->check(config::path());
  option("--log-level", config.log_level, "MUSTER_CONTROLLER_LOG_LEVEL",
         "debug, info, warn, error or off; lines go to stderr and STATE_DIR/controller.log")
      ->capture_default_str()
      ->check(config::one_of({"debug", "info", "warn", "error", "off"}));
  option("--log-file", config.log_file, "MUSTER_CONTROLLER_LOG_FILE",
         "Lines, and all else that would go to stderr, go into this file alone; at 64 MiB of lines "
         "it is turned over, and three old ones are kept")
      ->type_name("FILE")
      ->check(config::path());
  option("--log-quota", config.log_quota, "MUSTER_CONTROLLER_LOG_QUOTA",
         "Room for all ranks' logs together, as 20GB, where the disk has it in addition to the 320 "
         "MiB that logs leave free; the oldest finished jobs' logs go first. Default 20GB")
      ->transform(CLI::AsSizeValue(false))
      ->transform(config::size())
      ->type_name("SIZE");
  app.add_flag("--accept-loss", config.accept_loss,
               "For one start: go on with a damaged or older journal, whose newest records are "
               "gone, though none may be seen to be missing. No job of before is placed until "
               "every node has reported what it runs")
      ->envname("MUSTER_CONTROLLER_ACCEPT_LOSS")
      ->configurable(false);  // a file would say it for every start
  option("--archive-after", archive_after, "MUSTER_CONTROLLER_ARCHIVE_AFTER",
         "How long a finished job stays at hand before it moves to the archive")
      ->capture_default_str()
      ->type_name("TIME");
  option("--archive-keep", archive_keep, "MUSTER_CONTROLLER_ARCHIVE_KEEP",
         "How long the archive keeps a job after its end; older ones go, a few whenever another "
         "one comes. 7d or more")
      ->capture_default_str()
      ->type_name("TIME");
  option("--heartbeat-interval", heartbeat_interval, "MUSTER_CONTROLLER_HEARTBEAT_INTERVAL",
         "How often an agent says that it is there; silent after 3.2 of them")
      ->capture_default_str()
      ->type_name("TIME");
  option("--port-range", port_range, "MUSTER_CONTROLLER_PORT_RANGE",
         "Ports that jobs get on each node: rank 0's and HCCL's blocks")
      ->capture_default_str()
      ->type_name("FIRST-LAST");
  app.add_option("--dump", config.dump,
                 "Print what the journal of this state directory adds up to, then end; the "
                 "controller must not be running")
      ->type_name("DIR")
      ->check(config::path())
      ->configurable(false);
  const auto end = [&](int code, std::string text) {
    line.exit_code = code;
    line.text = std::move(text);
    return std::move(line);
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    return end(0, std::string(version()) + "\n");
  } catch (const CLI::CallForHelp&) {
    return end(0, app.help());
  } catch (const config::CallForSample&) {
    return end(0, file.sample());
  } catch (const CLI::ParseError& error) {
    if (const std::string text = file.explain(error); !text.empty())
      return end(kUsage, "muster-controller: " + text + "\n");
    return end(kUsage,
               std::string("muster-controller: ") + error.what() + "; --help lists the flags\n");
  }
  if (!config.dump.empty()) return line;
  const auto wrong = [&](const Error& error, const char* of = "") {
    return end(kUsage, "muster-controller: " + file.place_of(of) + error.message + "\n");
  };
  if (config.state_dir.empty()) {
    const std::string text = file.explain(CLI::RequiredError("--state-dir"));
    return end(kUsage,
               "muster-controller: " +
                   (text.empty() ? "--state-dir is required; --help lists the flags" : text) +
                   "\n");
  }
  std::error_code ignored;
  config.state_dir = std::filesystem::absolute(config.state_dir, ignored).lexically_normal();
  if (auto sound = complete_listen(config); !sound) return wrong(sound.error(), "--listen");
  if (auto sound = check_enrol(config); !sound) return wrong(sound.error(), "--enrol");
  if (auto sound = check_login_socket(config); !sound)
    return wrong(sound.error(), "--login-socket");
  if (auto sound = complete_root(config.outputs_root, "--outputs-root"); !sound)
    return wrong(sound.error(), "--outputs-root");
  if (auto sound = complete_root(config.inputs_root, "--inputs-root"); !sound)
    return wrong(sound.error(), "--inputs-root");
  if (config.endpoint_file.empty()) config.endpoint_file = config.state_dir / "endpoint.json";
  auto archive = parse_duration(archive_after);
  if (!archive) return wrong(std::move(archive.error()).in("--archive-after"), "--archive-after");
  config.archive_after = *archive;
  auto keep = parse_duration(archive_keep);
  if (!keep) return wrong(std::move(keep.error()).in("--archive-keep"), "--archive-keep");
  if (*keep < core::Limits().tombstone_keep)
    return wrong(
        {.message = "--archive-keep must be 7d or more: so long a finished job is known by "
                    "its id"},
        "--archive-keep");
  config.archive_keep = *keep;
  auto heartbeat = parse_duration(heartbeat_interval);
  if (!heartbeat)
    return wrong(std::move(heartbeat.error()).in("--heartbeat-interval"), "--heartbeat-interval");
  if (*heartbeat < std::chrono::milliseconds(10) || *heartbeat > std::chrono::minutes(1))
    return wrong({.message = "--heartbeat-interval must be 10ms..1m"}, "--heartbeat-interval");
  config.heartbeat_interval = *heartbeat;
  auto ports = parse_port_range(port_range);
  if (!ports) return wrong(ports.error(), "--port-range");
  std::tie(config.port_first, config.port_last) = *ports;
  if (file.check_only()) {
    if (auto policy = first_policy(config.access_file); !policy) return wrong(policy.error());
    return end(0, file.nothing_wrong());
  }
  return line;
}

}  // namespace muster::controller
