#include "deploy/ssh/ssh_config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "common/base/controls.h"

namespace muster::ssh {
namespace {

constexpr std::size_t kNameBytesMost = 255;
constexpr unsigned kAliveSecondsMost = 3600, kAliveCountMost = 100;

std::string expanded(std::string_view path, const Defaults& defaults) {
  if (path == "~" || path.starts_with("~/")) return defaults.home + std::string(path.substr(1));
  return std::string(path);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

// A number of ssh_config; 0, what is no number, and what the kernel would not take are not set.
std::optional<unsigned> parse_count(std::string_view text, unsigned most) {
  unsigned count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count == 0) return std::nullopt;
  return std::min(count, most);
}

std::vector<std::string> words(std::string_view text, const Defaults& defaults) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) found.push_back(expanded(text.substr(0, end), defaults));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

bool sound_name(std::string_view name, std::string_view also = {}) {
  // A shell, known_hosts and `ssh` itself each see the name, so it is narrow.
  return !name.empty() && name.size() <= kNameBytesMost && !name.starts_with('-') &&
         std::ranges::all_of(name, [also](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-._:%+").find(c) != std::string_view::npos ||
                  also.find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
         });
}

std::unexpected<Error> unsound(std::string_view what, std::string_view text) {
  return fail(ErrorCode::InvalidArgument, "connecting by SSH: " + std::string(what) + " '" +
                                              without_controls(text) + "' is not a name");
}

void set_default_files(Hop& hop, const Defaults& defaults) {
  const std::string folder = defaults.home + "/.ssh/";
  for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"})
    hop.identity_files.push_back(folder + name);
  hop.known_hosts = {folder + "known_hosts", folder + "known_hosts2", "/etc/ssh/ssh_known_hosts",
                     "/etc/ssh/ssh_known_hosts2"};
}

void set_from_target(Hop& hop, const Target& target) {
  hop.alias = target.host;
  if (!target.address.empty()) hop.host_name = target.address;
  if (target.port != 0) hop.port = target.port;
  if (!target.user.empty()) hop.user = target.user;
  if (!target.known_hosts.empty()) hop.known_hosts = target.known_hosts;
  if (!target.jump.empty()) {
    hop.proxy_jump = target.jump;
    hop.proxy_command.clear();
  }
  if (hop.proxy_jump == "none") hop.proxy_jump.clear();
  if (hop.proxy_command == "none") hop.proxy_command.clear();
}

}  // namespace

std::string Hop::text() const {
  return user + "@" + (host_name == alias ? host_name : alias) +
         (port == 22 ? "" : ":" + std::to_string(port));
}

Hop plain_hop(const Target& target, const Defaults& defaults) {
  Hop hop{.host_name = target.host, .user = defaults.user};
  set_default_files(hop, defaults);
  if (!target.identity_file.empty())
    hop.identity_files = {expanded(target.identity_file, defaults)};
  set_from_target(hop, target);
  return hop;
}

Result<Hop> configured_hop(const Target& target, std::string_view config,
                           const Defaults& defaults) {
  Hop hop{.host_name = target.host, .user = defaults.user};
  std::vector<std::string> user_files, global_files;
  for (std::string_view rest = config; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, blank), value = line.substr(blank + 1);
    if (key == "hostname") hop.host_name = value;
    if (key == "user") hop.user = value;
    if (key == "identityfile") hop.identity_files.push_back(expanded(value, defaults));
    if (key == "certificatefile") hop.certificate_files.push_back(expanded(value, defaults));
    if (key == "identitiesonly") hop.identities_only = value == "yes";
    if (key == "identityagent") hop.identity_agent = expanded(value, defaults);
    if (key == "userknownhostsfile") user_files = words(value, defaults);
    if (key == "globalknownhostsfile") global_files = words(value, defaults);
    if (key == "hostkeyalias") hop.host_key_alias = value;
    if (key == "hashknownhosts") hop.hash_known_hosts = value == "yes";
    if (key == "proxyjump") hop.proxy_jump = value;
    if (key == "proxycommand") hop.proxy_command = value;
    if (key == "revokedhostkeys" && value != "none") hop.key_setting = "RevokedHostKeys";
    if (key == "knownhostscommand" && value != "none") hop.key_setting = "KnownHostsCommand";
    if (key == "serveraliveinterval")
      if (const auto seconds = parse_count(value, kAliveSecondsMost))
        hop.alive.interval = std::chrono::seconds(*seconds);
    if (key == "serveralivecountmax")
      hop.alive.count = parse_count(value, kAliveCountMost).value_or(hop.alive.count);
    if (key == "port") {
      const auto port = parse_port(value);
      if (!port) return unsound("the port", value);
      hop.port = *port;
    }
  }
  hop.known_hosts = std::move(user_files);
  hop.known_hosts.insert(hop.known_hosts.end(), global_files.begin(), global_files.end());
  std::erase(hop.known_hosts, "none");
  std::erase(hop.identity_files, "none");
  set_from_target(hop, target);
  if (!sound_name(hop.host_name)) return unsound("the host", hop.host_name);
  if (!sound_name(hop.user, "@")) return unsound("the user", hop.user);
  return hop;
}

Result<std::vector<Target>> parse_jumps(std::string_view text) {
  std::vector<Target> jumps;
  if (text.empty() || text == "none") return jumps;
  const auto wrong = [&] {
    return fail(ErrorCode::InvalidArgument, "connecting by SSH: the jump host '" +
                                                without_controls(text) +
                                                "' is not like [USER@]HOST[:PORT]");
  };
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    std::string_view one = rest.substr(0, comma);
    if (one.starts_with("ssh://")) one.remove_prefix(6);
    Target jump{.jump = "none"};
    if (const std::size_t at = one.rfind('@'); at != std::string_view::npos) {
      jump.user = one.substr(0, at);
      if (jump.user.empty()) return wrong();
      one.remove_prefix(at + 1);
    }
    const std::size_t bracket = one.starts_with('[') ? one.find(']') : 0;
    if (bracket == std::string_view::npos) return wrong();
    const std::size_t colon = one.find(':', bracket);
    jump.host = bracket > 0 ? one.substr(1, bracket - 1) : one.substr(0, colon);
    if (bracket > 0 && one.size() != bracket + 1 && colon != bracket + 1) return wrong();
    if (colon != std::string_view::npos) {
      const auto port = parse_port(one.substr(colon + 1));
      if (!port) return wrong();
      jump.port = *port;
    }
    if (jumps.size() == kJumpsMost)
      return fail(ErrorCode::InvalidArgument,
                  "connecting by SSH: more than " + std::to_string(kJumpsMost) + " jump hosts");
    if (!check_target(jump)) return wrong();
    jumps.push_back(std::move(jump));
    if (comma == std::string_view::npos) return jumps;
    rest.remove_prefix(comma + 1);
  }
}

Result<void> check_target(const Target& target) {
  if (!sound_name(target.host)) return unsound("the host", target.host);
  if (!target.address.empty() && !sound_name(target.address))
    return unsound("the address", target.address);
  if (!target.user.empty() && !sound_name(target.user, "@"))
    return unsound("the user", target.user);
  for (const std::string& path : target.known_hosts)
    if (path.empty() || has_controls(path) || path.find(' ') != std::string::npos)
      return unsound("the known_hosts file", path);
  if (has_controls(target.identity_file)) return unsound("the key file", target.identity_file);
  return {};
}

}  // namespace muster::ssh
