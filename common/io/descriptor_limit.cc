#include "common/io/descriptor_limit.h"

#include <sys/resource.h>

#include <cstdint>

namespace muster::io {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

std::string descriptors_missing(std::size_t wanted) {
  const std::size_t limit = descriptor_limit();
  if (limit >= wanted) return {};
  return "at most " + std::to_string(limit) + " descriptors may be open in this process, " +
         std::to_string(wanted) +
         " are wanted: logs are opened anew for each scan, and many nodes or clients are kept out; "
         "raise the hard limit (ulimit -Hn, LimitNOFILE=) and start again";
}

}  // namespace muster::io
