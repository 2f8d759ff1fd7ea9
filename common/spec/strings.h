// Every text of a spec, by reflection: so that a field added later cannot be forgotten. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

// Dotted keys of the texts (values, map keys, list elements) that hold a byte 0, which the kernel
// would cut them at.
std::vector<std::string> strings_with_nul(const v1::JobSpec& spec);

// Dotted keys of the texts of one line (paths, names) that hold a control character. Arguments,
// variables, commands, expressions and values of a patch may have tabs and line ends, and are not
// among them.
std::vector<std::string> lines_with_controls(const v1::JobSpec& spec);

// All texts in which templates may be, by their dotted keys: those of values, not the names of a
// map.
std::vector<std::pair<std::string, std::string>> texts_of(const v1::JobSpec& spec);

}  // namespace muster::spec
