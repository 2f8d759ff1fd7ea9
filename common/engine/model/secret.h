// Variables of a job whose values are secrets: ${secret:NAME}. Pure.
//
// A secret is the whole value of a variable, and never a part of a text. So no plan, launch record
// or command line has the value itself: only the worker puts it into the environment of a process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::engine {

inline constexpr std::string_view kSecretPrefix = "secret:";

// NAME of "${secret:NAME}". Nothing: the value has no secret. Error: it names one, and is not a
// whole reference to it.
Result<std::optional<std::string>> secret_of(std::string_view value);

// The key of the spec -> the secret that it names: "runtime.env.HF_TOKEN" -> "hf". Sound specs
// only.
std::map<std::string, std::string> secrets_of(const v1::JobSpec& spec);

}  // namespace muster::engine
