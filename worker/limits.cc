#include "worker/limits.h"

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace muster::worker {
namespace {

std::string text_of(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

void complain(Complaints& complaints, const char* name, rlim_t wanted, rlim_t most) {
  complaints.say(std::string("setting limit '") + name + "' to " + text_of(wanted) +
                 ": the hard limit is " + text_of(most) +
                 ", and going above it takes CAP_SYS_RESOURCE, which root has, but not in most "
                 "containers; raise it for the agent");
}

void raise(__rlimit_resource which, std::uint64_t asked, const char* name, Complaints& complaints) {
  if (asked == 0) return;
  const rlim_t wanted = asked == UINT64_MAX ? RLIM_INFINITY : asked;
  rlimit limit{};
  ::getrlimit(which, &limit);
  if (limit.rlim_cur == wanted && limit.rlim_max == wanted) return;
  const rlimit both{.rlim_cur = wanted, .rlim_max = wanted};
  if (::setrlimit(which, &both) == 0) return;
  const rlimit soft{.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max,
                    .rlim_max = limit.rlim_max};
  ::setrlimit(which, &soft);
  if (soft.rlim_cur != wanted) complain(complaints, name, wanted, limit.rlim_max);
}

std::optional<rlimit> nofile_of_ranks(std::uint64_t asked, Complaints& complaints) {
  if (asked == 0) return std::nullopt;
  const rlim_t wanted = asked == UINT64_MAX ? RLIM_INFINITY : asked;
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  if (wanted > own.rlim_max) {
    const rlimit raised{.rlim_cur = own.rlim_cur, .rlim_max = wanted};
    if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
      complain(complaints, "nofile", wanted, own.rlim_max);
      return rlimit{.rlim_cur = own.rlim_max, .rlim_max = own.rlim_max};
    }
  }
  return rlimit{.rlim_cur = wanted, .rlim_max = wanted};
}

}  // namespace

RankLimits apply_limits(const rundir::v1::Launch& launch, Complaints& complaints) {
  raise(RLIMIT_MEMLOCK, launch.memlock(), "memlock", complaints);
  return {.nofile = nofile_of_ranks(launch.nofile(), complaints)};
}

}  // namespace muster::worker
