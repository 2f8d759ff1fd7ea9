// Finds out which processes on a device are not muster's. Plain functions for any thread; they read
// /proc and /etc/passwd, but never a directory service, which may hang.
//
// Tools report the host's pids, but an agent in a container sees other numbers. There a pid counts
// as a process of this side only if the names agree as well. Most of the host's pids mean nothing
// in a container, not even those of muster's own ranks. On a device that one of muster's runs uses,
// such a process counts as muster's; on any other device it counts as a stranger.
#pragma once

#include <functional>
#include <vector>

#include "agent/probe/device.h"

namespace muster::agent::probe {

// Reports whether pids here are the machine's own and not those of a container.
bool sees_all_processes();

// Removes muster's processes, and sets the user of the others if this side can see it.
//   - `ours` decides for a pid of this side, whose process may have ended meanwhile; none = no
//     process is.
//   - `on_device`: one of muster's runs uses the device.
//   - `sees_all`: a process that no longer exists occupies nothing, and the owner of the others is
//     known. In a container neither can be known.
void keep_strangers(std::vector<Occupant>& occupants, const std::function<bool(pid_t)>& ours,
                    bool on_device, bool sees_all);

}  // namespace muster::agent::probe
