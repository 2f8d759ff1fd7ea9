#include "common/spec/complete_limits.h"

#include <fmt/format.h>

#include <limits>

#include "common/spec/key_table.h"

namespace muster::spec {
namespace {

std::string_view limits_accepted(std::string_view key) { return find_key(key)->accepted; }

}  // namespace

void set_default_limits(v1::LimitSpec& limits) {
  if (!limits.has_nofile()) limits.set_nofile(kNofileMax);
  if (!limits.has_memlock()) limits.set_memlock(std::numeric_limits<std::uint64_t>::max());
}

// Memory and processors can be limited only in a container. The cgroups that muster makes for other
// runs need no controllers; only few agents get controllers delegated.
void check_limits(const v1::JobSpec& spec, const SayProblem& problem) {
  const v1::LimitSpec& limits = spec.runtime().limits();
  if (limits.nofile() > kNofileMax)
    problem("runtime.limits.nofile", fmt::format("{} is out of range ({})", limits.nofile(),
                                                 limits_accepted("runtime.limits.nofile")));
  const auto needs_container = [&](const char* key) {
    problem(key, "is of a container, and there is none: name one with runtime.image");
  };
  if (limits.memory() != 0 && spec.runtime().image().empty())
    needs_container("runtime.limits.memory");
  else if (limits.memory() != 0 && (limits.memory() < kMemoryMin || limits.memory() > kMemoryMax))
    problem("runtime.limits.memory", fmt::format("{} bytes are out of range ({})", limits.memory(),
                                                 limits_accepted("runtime.limits.memory")));
  if (limits.millicpus() != 0 && spec.runtime().image().empty())
    needs_container("runtime.limits.cpus");
  else if (limits.millicpus() != 0 &&
           (limits.millicpus() < kMillicpusMin || limits.millicpus() > kMillicpusMax))
    problem("runtime.limits.cpus",
            fmt::format("{} thousandths are out of range ({})", limits.millicpus(),
                        limits_accepted("runtime.limits.cpus")));
}

}  // namespace muster::spec
