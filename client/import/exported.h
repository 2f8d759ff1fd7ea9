// Selects what a script has exported when it launches, for a job's runtime.env. Pure.
//
// It leaves out what muster sets itself and what may be a secret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/import/captured.h"

namespace muster::import {

struct Exported {
  std::map<std::string, std::string> kept;  // values as a spec has them
  // names that look like a token, a password or a key, or values with a password in an address
  std::vector<std::string> secret;
  // what muster sets for every rank: MASTER_ADDR, RANK_TABLE_FILE, CUDA_VISIBLE_DEVICES
  std::vector<std::string> placed;
  // not UTF-8, control characters, too long, or the path of a stand-in
  std::vector<std::string> unusable;
};

// `programs` is the stand-ins' directory. It is on the PATH of `after`, and is removed from every
// value that the script made from that PATH.
Exported exported(const Variables& before, const Variables& after, std::string_view engine,
                  std::string_view programs);

// Returns the variables that the script reads from its given environment and does not set. Where
// the script runs as a job, a spec has to name them.
Exported read_from_outside(std::string_view script, const Variables& before,
                           std::string_view engine);

bool seems_secret(std::string_view name, std::string_view value);

}  // namespace muster::import
