#include "common/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace muster {

void assertion_failed(const char* expression, const char* file, int line, const char* text) {
  std::fprintf(stderr,
               "muster: broken invariant at %s:%d: %s (%s); this is a bug, please report it\n",
               file, line, text, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace muster
