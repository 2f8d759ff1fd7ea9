// Flushes standard output, which may be a file on a full disk. One stateless function.
#pragma once

namespace muster::client {

// Throws std::system_error if not everything could be written; main prints the error and ends.
// Without this check nobody would notice for a long time: a followed stream may go on for days.
void flush_out();

}  // namespace muster::client
