// What the kernel has received for a TCP socket since it was opened, in bytes. 0: it does not say
// (Linux before 4.1), or it is another socket. A stateless function; any thread.
#pragma once

#include <cstdint>

namespace muster::controller {

std::uint64_t received_by(int fd);

}  // namespace muster::controller
