// Reads `stages` of a YAML spec, and makes a job of each stage. Pure, except for
// ParseOptions::read_file.
//
// Each stage inherits the top level, and its own keys override it: maps are merged key by key,
// lists and scalars are replaced. All problems of all stages are reported at once. A problem of the
// top level alone is reported once, under its own key.
#pragma once

#include "common/spec/yaml_tree.h"

namespace muster::spec {

// The stages of a chain are sent in one request, which may have 9 MiB (rpc::kRequestBytesMax).
inline constexpr std::size_t kChainBytesMax = 8U << 20U;

// True if the spec is a chain, or tries to be one.
bool has_stages(const Node& root);

// The tree must already contain the overrides. The function adds to `result`.
void read_stages(Node root, const ParseOptions& options, Parsed& result);

}  // namespace muster::spec
