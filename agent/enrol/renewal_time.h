// Says when a certificate is renewed. Pure.
#pragma once

#include "common/base/time.h"
#include "common/pki/credentials.h"

namespace muster::agent {

// Two thirds of the certificate's life after it was made, and up to a twelfth of its life later:
// `jitter` is 0 to 1, and keeps nodes that joined together from coming together. (A certificate
// begins pki::kClockDifference before it is made.)
[[nodiscard]] WallTime renewal_time(const pki::Credentials& credentials, double jitter);

}  // namespace muster::agent
