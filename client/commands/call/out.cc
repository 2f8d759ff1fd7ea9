#include "client/commands/call/out.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace muster::client {

void flush_out() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(),
                          "writing to standard output");
}

}  // namespace muster::client
