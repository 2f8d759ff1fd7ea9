// Changes to a configuration file: its text and a list of places with their new values -> the text
// of the copy.
//
//   a key that its map does not have        is added: configurations have defaults
//   a map, an item or a list on the way     has to be there; else an error with the nearest name
//   what an anchor shares                   is changed once, wherever the file refers to it, also
//                                           when the path goes through an alias or a merge ('<<');
//                                           a key of the map itself is set there alone
//   an alias or a merged key itself         gets a value of its own there
//   a key that is there twice               the last one is meant, as loaders take it
//
// Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/patch/document.h"

namespace muster::patch {

struct Change {
  std::string at;     // path.h
  std::string value;  // YAML, one document
};

inline constexpr std::size_t kValueBytesMax = 64 << 10;

// By the name's end: .yaml and .yml, .json. Nothing: neither.
std::optional<Format> format_of(std::string_view name);

// `name` is that of the file, for messages; it decides the format. Without changes: the text as a
// copy is written, for comparing. Errors (InvalidArgument): "changing 'runer_config.epochs' of
// '/srv/a.yaml': there is no 'runer_config'; nearest: 'runner_config'".
// `near_misses` gets a sentence for each key that is added beside one of nearly the same name: who
// mistypes a key changes nothing else.
Result<std::string> changed_file(std::string_view name, std::string_view text,
                                 std::span<const Change> changes,
                                 std::vector<std::string>* near_misses = nullptr);

}  // namespace muster::patch
