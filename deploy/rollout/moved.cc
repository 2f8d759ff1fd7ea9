#include "deploy/rollout/moved.h"

#include <fmt/format.h>

namespace muster::rollout {

void mark_moved(Surveyed& one, const Manifest& manifest) {
  const auto at = manifest.agents.find(one.wanted.name);
  if (one.error || one.wanted.role != Role::Agent || at == manifest.agents.end()) return;
  const Deployed& old = at->second;
  const Places& places = one.check.places;
  const bool same_login =
      old.login.host == one.wanted.login.host && old.login.user == one.wanted.login.user;
  const bool same_config = !old.config_sha.empty() && one.check.config_sha == old.config_sha;
  if (old.places.prefix == places.prefix && old.places.state_dir == places.state_dir &&
      old.places.systemd == places.systemd && (same_login || same_config))
    return;
  one.findings.push_back(
      {.stops = true,
       .text = fmt::format(
           "it is deployed on '{}'{}, with prefix '{}' and state directory '{}', and may run "
           "there; remove it there first: leave it out of hosts.yaml and run 'muster deploy up "
           "--prune', or run 'muster deploy down'; then run it again",
           old.login.host, old.login.user.empty() ? "" : " as '" + old.login.user + "'",
           old.places.prefix, old.places.state_dir)});
}

}  // namespace muster::rollout
