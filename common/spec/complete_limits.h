// runtime.limits: defaults and bounds. Part of complete(): a spec of the API was looked at by
// nobody before. Pure.
#pragma once

#include <cstdint>

#include "common/spec/complete_patch.h"

namespace muster::spec {

inline constexpr std::uint64_t kNofileMax = 1'048'576;
// Less than the worker and the container's own start take (docker's least is 6 MiB) would end in a
// kill that nobody understands.
inline constexpr std::uint64_t kMemoryMin = 16ULL << 20U, kMemoryMax = 1ULL << 60U;
inline constexpr std::uint32_t kMillicpusMin = 100, kMillicpusMax = 4'096'000;

void set_default_limits(v1::LimitSpec& limits);
void check_limits(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
