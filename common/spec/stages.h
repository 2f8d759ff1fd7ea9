// `stages` of a YAML spec: each stage inherits the top level, its own keys over it (maps merged key
// by key, lists and scalars replaced), and becomes a job of its own. Every problem of every stage
// at once: what the top level alone is to blame for is said once, under its own key. Pure but for
// ParseOptions::read_file.
#pragma once

#include "common/spec/yaml_tree.h"

namespace muster::spec {

// The stages of a chain are sent in one call, which may have 16 MiB.
inline constexpr std::size_t kChainBytesMax = 8U << 20U;

// The spec is a chain, or tries to be one.
bool has_stages(const Node& root);

// For a tree with the overrides in it; adds to `result`.
void read_stages(Node root, const ParseOptions& options, Parsed& result);

}  // namespace muster::spec
