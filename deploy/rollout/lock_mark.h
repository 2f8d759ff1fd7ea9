// The content of a deployment's lock (controller_host.h): who deploys, since when, and by which
// process. Plain values; reads /proc of this machine.
//
//   "ann@laptop|2026-11-26T10:00:00Z|BOOT_ID|PID|START_TIME|PID_NAMESPACE|UID"
//
// A reader passes over further fields. The process of a mark can be judged only by another one of
// the same boot, the same PID namespace and the same user: two containers share a boot, and a user
// may not see the processes of another one (hidepid of /proc).
#pragma once

#include <string>

namespace muster::rollout {

// "ann@laptop"
std::string operator_name();
// Of this process, since now.
std::string own_lock_mark();

struct LockOwner {
  std::string who, since;
  bool gone = false;  // its process is known not to run any more
};
// Empty fields: it is no mark.
LockOwner parse_lock_mark(const std::string& mark);

}  // namespace muster::rollout
