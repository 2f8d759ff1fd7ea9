// This process's own children, those that have become so because their parent ended among them: the
// worker is the subreaper of all that it starts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/process/identity.h"

namespace muster::worker {

// Living and dead ones that are not reaped. The kernel may leave some out while others die: only
// has_children() proves that there are none.
std::vector<pid_t> children();
bool has_children();
// Of another process, of all of its threads; empty: it is gone, too.
std::vector<pid_t> children_of(pid_t pid);

// A process of this very binary: the launcher shim, or what has not come to its exec yet.
bool is_own_binary(pid_t pid);

// What has come from this process and lives, in whatever group, session or depth. None from below
// the launcher shim (a process of this very binary): that hands on what it is told.
struct Descendant {
  process::ProcessId id;
  pid_t group = 0;
};
std::vector<Descendant> descendants();

// Dead and not reaped, or about to be: SIGKILL or SIGTERM is before it.
bool is_dying(pid_t pid);

// Which rank of a training a process takes itself for, by its environment: "rank 3" for RANK_ID=3
// or RANK=3; empty: it does not say, or has ended.
std::string rank_of_process(pid_t pid);
// The number alone.
std::optional<std::uint32_t> rank_number_of(pid_t pid);
// The same of an environment: NAME=value, each ended by a zero byte.
std::optional<std::uint32_t> rank_number_in(std::string_view environment);

}  // namespace muster::worker
