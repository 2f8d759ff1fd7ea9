// Finds all texts of a spec by reflection, so that a field added later cannot be forgotten. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

// Returns the dotted keys of the texts (values, map keys, list elements) that contain a byte 0. The
// kernel would cut them there.
std::vector<std::string> strings_with_nul(const v1::JobSpec& spec);

// Returns the dotted keys of the one-line texts (paths, names) that contain a control character.
// Arguments, variables, commands, expressions and values of a patch may have tabs and line ends, so
// they are not checked.
std::vector<std::string> lines_with_controls(const v1::JobSpec& spec);

// Returns all texts that may contain templates, with their dotted keys: the values, but not the
// names of a map.
std::vector<std::pair<std::string, std::string>> texts_of(const v1::JobSpec& spec);

}  // namespace muster::spec
