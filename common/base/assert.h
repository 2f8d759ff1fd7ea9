// MUSTER_ASSERT checks an invariant of muster's own code. Pure.
//
// The check is active in every build. A broken invariant ends the process with the source position
// and a sentence. Do not use it for errors that a user, a network or a disk can cause: these are a
// Result (error.h).
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
