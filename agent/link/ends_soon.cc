#include "agent/link/ends_soon.h"

#include <chrono>

#include "common/pki/identity.h"

namespace muster::agent {

std::string ends_soon(const pki::Credentials& own, WallTime now) {
  constexpr std::chrono::days kSoon{7};
  if (now > own.not_after || own.not_after - now > kSoon) return {};
  return "the certificate of " + pki::text_of(own.identity) + " ends at " +
         utc_text(own.not_after) +
         ": with --enrol the agent renews it by itself, and its log says what is in the way; "
         "without, "
         "make a new one by `muster cert issue`, and put it in the place of the file; the agent "
         "reads "
         "it at its next connection";
}

}  // namespace muster::agent
