#include "deploy/rollout/wanted.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/enrol/socket_place.h"
#include "deploy/rollout/packaged_units.h"

namespace muster::rollout {
namespace {

// Returns the word as ExecStart= reads it (systemd.service(5), "Command lines").
std::string unit_word(std::string_view word) {
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '%' || c == '$') out += c;
    out += c;
  }
  return out + '"';
}

// The packaged unit with another command line, without what is only of the package: its user, its
// directories, its page.
std::string unit_of(Role role, const std::string& command) {
  std::string out;
  bool package_only = false;
  for (std::string_view rest = packaged_unit(role); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with('[')) package_only = false;
    if (line.starts_with(kPackageOnly)) package_only = true;
    if (package_only || line.starts_with("Documentation=")) continue;
    out += line.starts_with("ExecStart=") ? "ExecStart=" + command : std::string(line);
    out += '\n';
    if (line == "[Unit]") out += std::string(kUnitMark) + "\n";
  }
  return out;
}

// Only root can make the place where `muster login` looks. Below the home directory of another user
// there is none that everybody reaches. And without an access file everybody of the controller's
// host could submit jobs, which run as the agents' user: that is for a person to decide.
std::string login_socket_of(const Wanted& wanted, const Places& places) {
  if (wanted.login_socket == "none") return {};
  if (!wanted.login_socket.empty()) return wanted.login_socket;
  return places.root && !access_file(wanted).empty() ? enrol::kLoginSocket : "";
}

// `option` with its '='.
std::string_view value_of(const Wanted& wanted, std::string_view option) {
  for (const std::string_view word : wanted.options)
    if (word.starts_with(option)) return word.substr(option.size());
  return {};
}

}  // namespace

std::string_view to_string(Role role) { return role == Role::Controller ? "controller" : "agent"; }

std::string_view program_of(Role role) {
  return role == Role::Controller ? "muster-controller" : "muster-agent";
}

std::vector<std::string_view> programs_of(Role role) {
  if (role == Role::Controller) return {"muster", "muster-controller"};
  return {"muster", "muster-agent", "muster-worker"};
}

std::string_view enrol_address(const Wanted& wanted) { return value_of(wanted, "--enrol="); }

std::string_view access_file(const Wanted& wanted) { return value_of(wanted, "--access="); }

std::vector<Wanted> wanted_of(const hosts::HostsFile& file) {
  std::vector<Wanted> out;
  out.push_back({.role = Role::Controller,
                 .name = "controller",
                 .login = file.controller.login,
                 .state_dir = file.controller.state_dir,
                 .address = file.controller.listen,
                 .options = file.controller.options,
                 .login_socket = file.controller.login_socket});
  for (const hosts::Agent& agent : file.agents) {
    out.push_back({.role = Role::Agent,
                   .name = agent.name,
                   .login = agent.login,
                   .state_dir = agent.state_dir,
                   .address = file.controller.address,
                   .options = agent.options});
  }
  return out;
}

std::string unit_start(Role role, const Places& places) {
  return "ExecStart=" + unit_word(fmt::format("{}/bin/{}", places.current(), program_of(role)));
}

std::string unit_name(Role role) { return fmt::format("muster-{}.service", to_string(role)); }

std::string Places::bin(std::string_view version) const {
  return fmt::format("{}/{}/bin", prefix, version);
}
std::string Places::current() const { return prefix + "/current"; }
std::string Places::role_dir(Role role) const {
  return fmt::format("{}/{}", prefix, to_string(role));
}
std::string Places::credentials() const { return role_dir(Role::Agent) + "/credentials.pem"; }
std::string Places::config_file(Role role) const {
  return systemd ? "/etc/systemd/system/" + unit_name(role) : role_dir(role) + "/command-line";
}

std::vector<std::string> command_words(const Wanted& wanted, const Places& places) {
  std::vector<std::string> words = {
      fmt::format("{}/bin/{}", places.current(), program_of(wanted.role)),
      "--state-dir=" + places.state_dir};
  if (wanted.role == Role::Controller) {
    words.push_back("--listen=" + wanted.address);
    if (const std::string socket = login_socket_of(wanted, places); !socket.empty())
      words.push_back("--login-socket=" + socket);
  } else {
    words.push_back("--controller=" + wanted.address);
    words.push_back("--credentials=" + places.credentials());
    words.push_back("--name=" + wanted.name);
  }
  words.push_back(fmt::format("--log-file={}/{}.log", places.state_dir, program_of(wanted.role)));
  words.insert(words.end(), wanted.options.begin(), wanted.options.end());
  return words;
}

std::string config_text(const Wanted& wanted, const Places& places) {
  const std::vector<std::string> words = command_words(wanted, places);
  std::string text;
  if (!places.systemd) {
    for (const std::string& word : words) text += word + "\n";
    return text;
  }
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + unit_word(word);
  return unit_of(wanted.role, text);
}

}  // namespace muster::rollout
