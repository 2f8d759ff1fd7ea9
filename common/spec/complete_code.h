// code.patches: bounds, what is in the diffs, the names of muster's own. Part of complete(): a spec
// of the API was looked at by nobody before. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

inline constexpr std::size_t kCodePatchBytesMax = 512U << 10U;    // of one
inline constexpr std::size_t kCodePatchesBytesMax = 768U << 10U;  // of all together
inline constexpr int kCodePatchesMax = 64;

void check_code_patches(const v1::JobSpec& spec,
                        const std::function<void(std::string key, std::string message)>& problem);

}  // namespace muster::spec
