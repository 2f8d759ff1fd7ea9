#include "deploy/rollout/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/names.h"
#include "deploy/hosts/values.h"

namespace muster::rollout {
namespace {

using nlohmann::json;
constexpr int kManifestVersion = 1;

json to_json(const Deployed& one) {
  return {{"login",
           {{"host", one.login.host},
            {"address", one.login.address},
            {"port", one.login.port},
            {"user", one.login.user},
            {"identity", one.login.identity},
            {"jump", one.login.jump},
            {"knownHosts", one.login.known_hosts},
            {"acceptNew", one.login.accept_new},
            {"sudo", one.login.sudo}}},
          {"prefix", one.places.prefix},
          {"stateDir", one.places.state_dir},
          {"systemd", one.places.systemd},
          {"versions", one.versions},
          {"config", one.config_sha},
          {"whole", one.whole}};
}

// The values become words of commands again, so they are checked like those of hosts.yaml.
bool sound(hosts::ValueKind kind, const std::string& value, bool may_be_empty) {
  return value.empty() ? may_be_empty : hosts::why_not(kind, value).empty();
}

bool read_deployed(const json& item, Deployed& into) {
  using enum hosts::ValueKind;
  if (!item.is_object() || !item.contains("login") || !item["login"].is_object()) return false;
  const json& login = item["login"];
  into.login = {.host = login.value("host", ""),
                .address = login.value("address", ""),
                .port = login.value("port", std::uint16_t{0}),
                .user = login.value("user", ""),
                .identity = login.value("identity", ""),
                .jump = login.value("jump", ""),
                .known_hosts = login.value("knownHosts", ""),
                .accept_new = login.value("acceptNew", false),
                .sudo = login.value("sudo", false)};
  into.places = {.prefix = item.value("prefix", ""),
                 .state_dir = item.value("stateDir", ""),
                 .systemd = item.value("systemd", false)};
  into.versions = item.value("versions", std::vector<std::string>());
  into.config_sha = item.value("config", "");
  into.whole = item.value("whole", false);
  return sound(Host, into.login.host, false) && sound(Host, into.login.address, true) &&
         sound(User, into.login.user, true) && sound(HomePath, into.login.identity, true) &&
         sound(Jump, into.login.jump, true) && sound(HomePath, into.login.known_hosts, true) &&
         sound(Path, into.places.prefix, false) && sound(Path, into.places.state_dir, false) &&
         std::ranges::all_of(into.versions, is_node_name);
}

}  // namespace

std::string why_not_deployed_by(const std::string& cluster, const Manifest* manifest,
                                bool controller_runs, const Places& places) {
  if (manifest != nullptr && manifest->cluster != cluster)
    return fmt::format(
        "the manifest on it is of cluster '{}', and hosts.yaml of '{}'; is it the right "
        "hosts.yaml?",
        manifest->cluster, cluster);
  if (manifest == nullptr && controller_runs)
    return fmt::format(
        "one runs there, and '{}' has no manifest of it; was state_dir changed? run 'muster "
        "deploy down' with the old hosts.yaml first",
        places.state_dir);
  return {};
}

bool same_way(const hosts::Login& a, const hosts::Login& b) {
  hosts::Login of_a = a, of_b = b;
  of_a.prefix.clear();
  of_b.prefix.clear();
  return of_a == of_b;
}

void take_login(Deployed& agent, const hosts::Login& of_file) {
  if (agent.login.host != of_file.host || agent.login.user != of_file.user) return;
  const bool sudo = agent.login.sudo;  // who owns what is there
  agent.login = of_file;
  agent.login.sudo = sudo;
}

std::string manifest_text(const Manifest& manifest) {
  json agents = json::object();
  for (const auto& [name, one] : manifest.agents) agents[name] = to_json(one);
  return json{{"version", kManifestVersion},
              {"cluster", manifest.cluster},
              {"by", manifest.by},
              {"at", manifest.at},
              {"controller", to_json(manifest.controller)},
              {"agents", agents}}
             .dump(1) +
         "\n";
}

Result<Manifest> parse_manifest(std::string_view text) {
  const auto broken = [](std::string_view why) {
    return fail(ErrorCode::DataLoss,
                fmt::format("reading the manifest: {}; what is deployed is not known", why));
  };
  if (text.size() > kManifestBytesMost) return broken("it has more than 1 MiB");
  try {
    const json root = json::parse(text);
    if (!root.is_object()) return broken("it is no JSON object");
    if (root.value("version", 0) != kManifestVersion)
      return broken("another version of muster wrote it");
    Manifest out{.cluster = root.value("cluster", ""),
                 .by = root.value("by", ""),
                 .at = root.value("at", "")};
    if (!root.contains("controller") || !read_deployed(root["controller"], out.controller))
      return broken("its controller makes no sense");
    const json agents = root.value("agents", json::object());
    for (const auto& [name, item] : agents.items()) {
      if (!is_node_name(name) || !read_deployed(item, out.agents[name]))
        return broken("one of its agents makes no sense");
    }
    return out;
  } catch (const json::exception&) {
    return broken("it is not what muster deploy writes");
  }
}

}  // namespace muster::rollout
