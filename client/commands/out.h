// Standard output, whose reader may be a full disk.
#pragma once

namespace muster::client {

// Throws std::system_error when not all that was printed could be written; main says so and ends.
// Nobody would learn of it later: a stream that is followed may go on for days.
void flush_out();

}  // namespace muster::client
