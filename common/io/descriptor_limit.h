// How many descriptors this process may have open. The soft limit (1,024 by custom) is there for programs that use select(2): a daemon with hundreds of streams
// and logs raises its own. What it starts inherits that; a rank's limit is its job's, set by its worker.
#pragma once

namespace muster::io {

// The soft limit up to the hard one. Best effort: whoever then has too few meets the error of an open.
void raise_descriptor_limit();

}  // namespace muster::io
