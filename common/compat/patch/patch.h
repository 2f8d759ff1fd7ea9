// Changes a configuration file: it turns the file's text and a list of paths with new values into
// the text of the copy. Pure.
//
//   a key that its map does not have        is added, because configurations have defaults
//   a map, an item or a list on the path    must exist; otherwise an error with the nearest name
//   a value that an anchor shares           is changed once, wherever the file refers to it, also
//                                           if the path goes through an alias or a merge ('<<'); a
//                                           key of the map itself is set only there
//   an alias or a merged key itself         gets its own value there
//   a key that exists twice                 the last one is changed, because loaders use it
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/compat/patch/document.h"

namespace muster::patch {

struct Change {
  std::string at;     // path.h
  std::string value;  // YAML, one document
};

inline constexpr std::size_t kValueBytesMax = 64 << 10;

// Decided by the ending of the name: .yaml and .yml, or .json. Nothing: neither.
std::optional<Format> format_of(std::string_view name);

// `name` is the file's, for messages, and it decides the format. Without changes the result is the
// text as a copy is written, for comparison. Errors (InvalidArgument): "changing
// 'runer_config.epochs' of '/srv/a.yaml': there is no 'runer_config'; nearest: 'runner_config'".
//
// `near_misses` gets a sentence for each added key whose map has another key of nearly the same
// name, because a mistyped key changes nothing else.
Result<std::string> changed_file(std::string_view name, std::string_view text,
                                 std::span<const Change> changes,
                                 std::vector<std::string>* near_misses = nullptr);

}  // namespace muster::patch
