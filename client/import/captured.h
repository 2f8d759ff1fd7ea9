// A Captured is one call of a stand-in (stand_in.h), with its file format. Plain values.
//
// The file has the directory, the number of words, the words and the variables. A byte 0 follows
// each, as in the kernel's format.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::import {

using Variables = std::map<std::string, std::string, std::less<>>;
// Returns an empty text if the variable is not set, or is empty.
std::string_view value_of(const Variables& variables, std::string_view name);

struct Captured {
  std::string directory;           // the directory of the call
  std::vector<std::string> words;  // the command line; the first one is the launcher's name
  Variables env;                   // the whole environment
};

std::string to_bytes(const Captured& call);
// Error: DataLoss.
Result<Captured> from_bytes(std::string_view bytes);

// Each text is NAME=VALUE.
Variables variables_of(const std::vector<std::string>& environment);

// True for a rank that the script starts itself: its environment has RANK, or a variable of an
// engine's ranks (RANK_ID, MS_ROLE), and the script has set that.
bool is_rank(const Variables& env, const Variables& before);

}  // namespace muster::import
