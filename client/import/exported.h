// What a script has exported when it launches, as a job's runtime.env: less what muster sets
// itself, and less what may be a secret. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/import/captured.h"

namespace muster::import {

struct Exported {
  std::map<std::string, std::string> kept;  // values as a spec has them
  // names that look like a token, a password or a key, or a value with a password in an address
  std::vector<std::string> secret;
  // what muster says to every rank: MASTER_ADDR, RANK_TABLE_FILE, CUDA_VISIBLE_DEVICES
  std::vector<std::string> placed;
  // not UTF-8, control characters, too long, a stand-in's path
  std::vector<std::string> unusable;
};

// `programs`: the stand-ins' directory, which stands on `after`'s PATH, and is taken out of all
// that the script made of that.
Exported exported(const Variables& before, const Variables& after, std::string_view engine,
                  std::string_view programs);

// Variables that the script reads and does not set, out of the environment it was given: where it
// runs as a job, a spec has to name them.
Exported read_from_outside(std::string_view script, const Variables& before,
                           std::string_view engine);

bool seems_secret(std::string_view name, std::string_view value);

}  // namespace muster::import
