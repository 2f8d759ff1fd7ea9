// observe.profile and observe.dump, by each engine's own means. Pure.
//
// An engine's observe.cc says which options and files they become (Engine::put_profile,
// profile_patch, put_dump).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "common/engine/model/rows.h"

namespace muster::engine {

inline constexpr std::size_t kDumpBytesMax = 64 << 10;

// The directory of a profile that has no place of its own, a template.
inline constexpr const char* kProfileDir = "${out}/profile/attempt-${attempt}";

// Adds what the engine's row makes of them, after the engine's own options.
void put_profile(Launching& launching);
void put_dump(Launching& launching);
// The change of a file that makes the profile. Nothing: no profile, or none by a file.
std::optional<v1::ConfigPatch> profile_patch(const v1::JobSpec& spec);

// Checks what does not depend on a placement.
void check_observing(const v1::JobSpec& spec, Problems& problems);

// --- for the engines' observe.cc -----------------------------------------------------------------
void add_profile_option(CommandLine& command, std::string_view name, std::string value);
// Refuses the first of these options that the command has itself.
void check_profile_given_once(const CommandLine& command, std::span<const std::string_view> options,
                              Problems& problems);

}  // namespace muster::engine
