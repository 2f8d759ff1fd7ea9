// One call of a stand-in (stand_in.h), and how it is kept in a file: the directory, the number of
// words, the words and the variables, each with a byte 0 behind it, as the kernel has them. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::import {

using Variables = std::map<std::string, std::string, std::less<>>;
// empty: not set, or set to nothing
std::string_view value_of(const Variables& variables, std::string_view name);

struct Captured {
  std::string directory;           // where it was called
  std::vector<std::string> words;  // the command line; the first one is the launcher's name
  Variables env;                   // all of it
};

std::string to_bytes(const Captured& call);
// Error: DataLoss.
Result<Captured> from_bytes(std::string_view bytes);

// NAME=VALUE each.
Variables variables_of(const std::vector<std::string>& environment);

// A rank that a script starts itself: what has RANK_ID, RANK or MS_ROLE in its environment, and the
// script has put it there.
bool is_rank(const Variables& env, const Variables& before);

}  // namespace muster::import
