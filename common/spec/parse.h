// Reads a YAML job spec into a v1.JobSpec, and checks specs. Pure, except for the files that
// ParseOptions::read_file reads.
//
// The parser knows every key of the spec (key_table.h): types, positions, and hints to the nearest
// key. It refuses a key by name if its behaviour does not exist yet. It reports every problem at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/spec.pb.h"

namespace muster::spec {

struct Problem {
  std::uint32_t line = 0;  // from 1; 0 = no position (an override, an API client)
  std::uint32_t column = 0;
  std::string key;      // dotted path
  std::string message;  // with the accepted values
};
// Returns "file:line:column: message", one a line. Without a position: "key: message".
std::string format(std::span<const Problem> problems, std::string_view file);

struct ParseOptions {
  // absolute; the base of the spec's relative paths
  std::string base_dir;
  std::vector<std::pair<std::string, std::string>> set;  // --set a.b=value (value is YAML)
  std::vector<std::pair<std::string, std::string>> env;  // --env K=V, over runtime.env
  // Reads a file that the spec names, with at most `most` bytes. An error gives the reason in a few
  // words. If the function is not set, keys that name files are refused.
  std::function<Result<std::string>(const std::string& path, std::size_t most)> read_file;
};
struct Parsed {
  v1::JobSpec spec;  // valid only if problems is empty; of a chain only its name
  // The stages of a chain (spec.stage), numbered in this order. Each comes after the stages that it
  // names, otherwise in the order of the text.
  std::vector<v1::JobSpec> stages;
  std::vector<Problem> problems;  // sorted by position
};
Parsed parse_yaml(std::string_view text, const ParseOptions& options);

// Applies the options' --set and --env to a complete spec. A list or a text is replaced, a map gets
// entries, and launch.patch gets further changes. `base_dir` is the base of relative paths.
std::vector<Problem> set_over(v1::JobSpec& spec, const ParseOptions& options);

// The controller's own check of a spec that came over the API. It fills in every default and
// reports every problem. `resolved`: as in engine::check_launch().
std::vector<Problem> complete(v1::JobSpec& spec, const v1::ResolvedSpec* resolved = nullptr);

// Returns the same bytes for the same spec, whatever the order of its maps.
std::string spec_bytes(const v1::JobSpec& spec);

// Returns the hash of a complete spec's content: 16 hex digits. It hashes spec_bytes(), so the
// order of maps does not matter.
std::string spec_hash(const v1::JobSpec& spec);

inline constexpr std::size_t kSpecBytesMax = 1 << 20;

}  // namespace muster::spec
