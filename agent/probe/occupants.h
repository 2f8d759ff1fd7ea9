// Whose the processes on a device are. Tools name them by the host's pid; an agent in a container
// sees other numbers, so there a pid is believed to be a process of this side only where the names
// agree as well. Most of the host's pids say nothing at all there, and neither do those of our own
// ranks: on a device that a run of ours is on, such a process is taken for ours, on any other for a
// stranger's. Reads /proc and /etc/passwd (never a directory service, which may hang). Any thread.
#pragma once

#include <functional>
#include <vector>

#include "agent/probe/device.h"

namespace muster::agent::probe {

// Whether pids here are the machine's own: not those of a container.
bool sees_all_processes();

// Takes those that are ours off, gives the rest their user where this side can see them. `ours`: of
// a pid on this side, whose process may have ended meanwhile; none = nobody is. `on_device`: a run
// of ours is on that device. `sees_all`: a process that is not there any more occupies nothing, and
// whose the others are is known; in a container nobody can tell.
void keep_strangers(std::vector<Occupant>& occupants, const std::function<bool(pid_t)>& ours,
                    bool on_device, bool sees_all);

}  // namespace muster::agent::probe
