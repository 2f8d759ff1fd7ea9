#include "worker/limits.h"

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace muster::worker {
namespace {

std::string text_of(rlim_t value) { return value == RLIM_INFINITY ? "unlimited" : std::to_string(value); }

void raise(__rlimit_resource which, std::uint64_t asked, const char* name, Complaints& complaints) {
  if (asked == 0) return;
  const rlim_t wanted = asked == UINT64_MAX ? RLIM_INFINITY : asked;
  rlimit limit{};
  ::getrlimit(which, &limit);
  if (limit.rlim_cur == wanted && limit.rlim_max == wanted) return;
  const rlimit both{.rlim_cur = wanted, .rlim_max = wanted};
  if (::setrlimit(which, &both) == 0) return;
  const rlimit soft{.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max, .rlim_max = limit.rlim_max};
  ::setrlimit(which, &soft);
  if (soft.rlim_cur != wanted) {
    complaints.say(std::string("setting limit '") + name + "' to " + text_of(wanted) + ": only root may go above " + text_of(limit.rlim_max) +
                   ", which it is now; raise it for the agent");
  }
}

}  // namespace

void apply_limits(const rundir::v1::Launch& launch, Complaints& complaints) {
  raise(RLIMIT_NOFILE, launch.nofile(), "nofile", complaints);
  raise(RLIMIT_MEMLOCK, launch.memlock(), "memlock", complaints);
}

}  // namespace muster::worker
