// A new CA for a cluster whose CA's key is lost or has leaked (`muster deploy up --new-ca`). The
// files of the CA are moved aside on the controller's host, the controller makes another CA when it
// starts again (common/pki/authority_files.h), and every node gets new credentials. It may be
// repeated: each time there is a new CA.
#pragma once

#include <string>

#include "common/base/error.h"
#include "deploy/rollout/host.h"
#include "deploy/rollout/judge.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

// What a host has to do for it, beside the rest. Pure.
[[nodiscard]] Steps with_new_ca(Steps steps, Role role);

// The files go to STATE_DIR/pki/before-TIME, mode 0700; without any, nothing happens. Blocking.
Result<void> move_ca_aside(Host& host, const Places& places);
// For sh.
[[nodiscard]] std::string move_ca_aside_script(const std::string& state_dir);

}  // namespace muster::rollout
