// Reads the members of a .tar.gz in memory. Pure but for the file that it reads; blocking.
//
// The format is ustar, as POSIX.1-2008 describes it (pax, "ustar Interchange Format"). Extended
// headers of pax and GNU are passed over: a release has short names. The archive is from another
// machine: it is bounded, and nothing of it is written anywhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::rollout {

inline constexpr std::uint64_t kArchiveBytesMost = std::uint64_t{2} << 30U;  // unpacked

// Calls `take(name, bytes)` for each regular file. InvalidArgument: it is no such archive, or it is
// damaged, or too large.
Result<void> read_bundle(
    const std::filesystem::path& file,
    const std::function<Result<void>(std::string_view name, std::string bytes)>& take);

}  // namespace muster::rollout
