// Reads the value of a secret. It is never an argument: everybody on the machine sees those.
#pragma once

#include <string>

#include "common/base/error.h"

namespace muster::client {

struct SecretValue {
  std::string file;    // empty: standard input, or at a terminal what is typed, which is not shown
  std::string what;    // for the question: "value of secret 'hf'"
  bool exact = false;  // keeps a line end at its end
};

// Blocks. InvalidArgument: it is too long, or nothing was typed; Io.
Result<std::string> read_secret_value(const SecretValue& wanted);

}  // namespace muster::client
