// The engines' own parts, one file each (torch.cc, command.cc); engine_table.cc lists them.
#pragma once

#include <map>
#include <string>

#include "common/engine/engine.h"

namespace muster::engine {

using Environment = std::map<std::string, Value>;

// A value that is muster's or the engine's alone.
inline void put(Environment& env, const char* name, std::string text, const char* source) { env.insert_or_assign(name, Value{std::move(text), source}); }
// A value that the spec may have set otherwise.
inline void put_default(Environment& env, const char* name, std::string text, const char* source) { env.try_emplace(name, Value{std::move(text), source}); }

void launch_torch(const LaunchRequest& request, LaunchPlan& plan);
std::span<const std::string_view> torch_identity();
void launch_command(const LaunchRequest& request, LaunchPlan& plan);

}  // namespace muster::engine
