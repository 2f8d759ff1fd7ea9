// MUSTER_ASSERT: our own broken invariants. On in every build; ends the process with place and
// sentence. Never for what a
// user, a network or a disk can cause: that is Result (error.h).
#pragma once

namespace muster {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line,
                                   const char* text);
}

#define MUSTER_ASSERT(expression, text)                                  \
  do {                                                                   \
    if (!(expression)) [[unlikely]]                                      \
      ::muster::assertion_failed(#expression, __FILE__, __LINE__, text); \
  } while (false)
