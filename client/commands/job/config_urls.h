// URLs of stores in a configuration (launch.config) that is on this machine. What the engine reads
// from such a place becomes an input, and launch.patch gives the ranks its path. Where the engine
// would copy outputs to becomes outputs.to. Stateless functions that read files. One thread.
#pragma once

#include <string>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::client {

// For each value that names data to read (Engine::input_keys) or where outputs go (output_key), in
// the file as launch.patch changes it. Nothing happens where the file is only on the nodes, or is
// no YAML or JSON.
void take_config_urls(v1::JobSpec& spec);

// A sentence for each other value with a URL, which nothing fetches and nothing uploads to.
std::vector<std::string> config_url_notes(const v1::JobSpec& spec);

}  // namespace muster::client
