// Whether a store's profile is one: which of its fields belong to which scheme. Pure.
#pragma once

#include "common/base/error.h"
#include "muster/v1/store_service.pb.h"

namespace muster::store {

inline constexpr std::size_t kProfileBytesMost = 8 << 10;  // without its CA
inline constexpr std::size_t kCaBytesMost = 16 << 10;

// InvalidArgument: the field, and what is wrong with it ("endpoint: ..."). Whether its secret
// exists is not asked.
Result<void> check_profile(const v1::StoreProfile& profile);

}  // namespace muster::store
