// Lists the processes below this process, and reads facts about them from /proc. Plain functions;
// the worker calls them on its one thread.
//
// A descendant whose parent ends becomes a child of the worker, because the worker is the subreaper
// of all that it starts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/process/identity.h"

namespace muster::worker {

// Returns the children that are not reaped, living and dead ones. The kernel may leave some out
// while others die: only has_children() proves that there are none.
std::vector<pid_t> children();
bool has_children();
// Returns the children of all threads of another process. Empty also if the process is gone.
std::vector<pid_t> children_of(pid_t pid);

// Reports whether the process runs this same binary: the launcher shim, or a child before its exec.
bool is_own_binary(pid_t pid);

// Returns the living descendants of this process, in any group, session or depth. It returns none
// below a launcher shim (a process of this same binary), because the shim passes signals on to
// them.
struct Descendant {
  process::ProcessId id;
  pid_t group = 0;
};
std::vector<Descendant> descendants();

// Reports whether the process is dead and not reaped, or about to die: SIGKILL or SIGTERM is
// pending.
bool is_dying(pid_t pid);

// Returns the training rank of a process according to its environment: "rank 3" for RANK_ID=3 or
// RANK=3. Empty: the environment names no rank, or the process has ended.
std::string rank_of_process(pid_t pid);
// Returns only the number.
std::optional<std::uint32_t> rank_number_of(pid_t pid);
// The same for an environment: NAME=value, each ended by a zero byte.
std::optional<std::uint32_t> rank_number_in(std::string_view environment);

}  // namespace muster::worker
