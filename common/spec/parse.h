// YAML job spec -> v1.JobSpec. Knows every key of the spec (key_table.h): types, positions,
// nearest-key hints; a key whose behaviour does not exist yet is refused by name. Every problem is
// reported at once. No I/O but what the caller hands in.
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
  std::uint32_t line = 0;  // from 1; 0 = no place (an override, an API client)
  std::uint32_t column = 0;
  std::string key;      // dotted path
  std::string message;  // with the accepted values
};
// "file:line:column: message", one a line; without a place: "key: message".
std::string format(std::span<const Problem> problems, std::string_view file);

struct ParseOptions {
  // absolute; relative paths of the spec are below it
  std::string base_dir;
  std::vector<std::pair<std::string, std::string>> set;  // --set a.b=value (value is YAML)
  std::vector<std::pair<std::string, std::string>> env;  // --env K=V, over runtime.env
  // A file that the spec names, of at most so many bytes; an error says in a few words why not.
  // Unset: such keys are refused.
  std::function<Result<std::string>(const std::string& path, std::size_t most)> read_file;
};
struct Parsed {
  v1::JobSpec spec;  // sound only when problems is empty; of a chain nothing but its name
  // Of a chain: its stages (spec.stage), each behind those that it names, else as they stand in the
  // text.
  std::vector<v1::JobSpec> stages;
  std::vector<Problem> problems;  // by position
};
Parsed parse_yaml(std::string_view text, const ParseOptions& options);

// The options' --set and --env over a spec that is complete: a list or a text is replaced, a map
// gets entries, and launch.patch further changes. Relative paths are below `base_dir`.
std::vector<Problem> set_over(v1::JobSpec& spec, const ParseOptions& options);

// The controller's own check of a spec that came over the API: fills every default in, reports
// every problem.
std::vector<Problem> complete(v1::JobSpec& spec);

// The same bytes for the same spec, whatever the order of its maps.
std::string spec_bytes(const v1::JobSpec& spec);

// Content hash of a complete spec (deterministic serialisation, CRC-independent of map order): 16
// hex digits.
std::string spec_hash(const v1::JobSpec& spec);

inline constexpr std::size_t kSpecBytesMax = 1 << 20;

}  // namespace muster::spec
