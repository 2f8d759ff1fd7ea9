// Checks code.patches: their limits, the content of the diffs, and the names of muster's built-in
// patches. Pure.
//
// It is a part of complete(), because nothing has checked a spec of the API before.
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
