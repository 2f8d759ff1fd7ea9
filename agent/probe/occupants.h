// Whose the processes on a device are. Tools name them by the host's pid; an agent in a container sees other numbers, so a pid is believed to be a process of
// this side only where the names agree as well. Reads /proc and /etc/passwd (never a directory service, which may hang). Any thread.
#pragma once

#include <functional>
#include <vector>

#include "agent/probe/device.h"

namespace muster::agent::probe {

// Takes those that are ours off, gives the rest their user where this side can see them. `ours`: of a pid on this side; none = nobody is.
void keep_strangers(std::vector<Occupant>& occupants, const std::function<bool(pid_t)>& ours);

}  // namespace muster::agent::probe
