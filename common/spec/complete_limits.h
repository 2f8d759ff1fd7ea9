// The defaults and bounds of runtime.limits. Pure.
//
// It is a part of complete(), because nothing has checked a spec of the API before.
#pragma once

#include <cstdint>

#include "common/spec/complete_patch.h"

namespace muster::spec {

inline constexpr std::uint64_t kNofileMax = 1'048'576;
// With less memory than the worker and the container's own start need, the kernel would kill them,
// and nobody would understand why. Docker's minimum is 6 MiB.
inline constexpr std::uint64_t kMemoryMin = 16ULL << 20U, kMemoryMax = 1ULL << 60U;
inline constexpr std::uint32_t kMillicpusMin = 100, kMillicpusMax = 4'096'000;

void set_default_limits(v1::LimitSpec& limits);
void check_limits(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
