// Manifest says what `muster deploy` put on which host. It stands with the controller, in
// STATE_DIR/deploy/manifest.json. Plain values; text form is JSON. Pure.
//
// It is written before a host is changed for the first time, so that `down` finds also what a
// broken `up` left. Readers take unknown fields for fields of a newer version, and pass over them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

struct Deployed {
  hosts::Login login;
  Places places;
  std::vector<std::string> versions;  // below the prefix; the newest one is the last
  std::string config_sha;
  bool whole = false;  // all of its steps were done
};

struct Manifest {
  std::string cluster;  // of hosts.yaml
  std::string by, at;   // "ann@laptop", "2026-11-26T10:00:00Z"
  Deployed controller;
  std::map<std::string, Deployed> agents;  // by node
};

// Why hosts.yaml, whose cluster is `cluster`, is not that of what is on the controller's host.
// Empty: it is. `manifest` null: there is none there.
std::string why_not_deployed_by(const std::string& cluster, const Manifest* manifest,
                                bool controller_runs, const Places& places);

// The same way to a host. The prefix is in Deployed::places.
bool same_way(const hosts::Login& a, const hosts::Login& b);
// Gives the agent the login that hosts.yaml has for it: the key or the port may be another one by
// now. Where hosts.yaml has another host or user, the agent may be at the old one, and keeps that.
void take_login(Deployed& agent, const hosts::Login& of_file);

inline constexpr std::size_t kManifestBytesMost = 1 << 20;

std::string manifest_text(const Manifest& manifest);
// DataLoss: it is not what manifest_text() writes.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace muster::rollout
