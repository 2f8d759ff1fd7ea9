#include "controller/enrol/trouble.h"

#include "common/base/controls.h"
#include "common/log/log.h"

namespace muster::controller {
namespace {

std::string_view text_of(EnrolCause cause) {
  switch (cause) {
    case EnrolCause::Accept: return "the system gives the enrolment port no connection";
    case EnrolCause::Full: return "the enrolment port has as many connections as it serves";
    case EnrolCause::AddressFull: return "one address has its share of the enrolment port";
    case EnrolCause::Handshake: return "a TLS handshake at the enrolment port failed";
    case EnrolCause::Late: return "a connection to the enrolment port was not done in time";
    case EnrolCause::Broken: return "a connection to the enrolment port ended before its request";
    case EnrolCause::Request: return "a request at the enrolment port cannot be read";
    case EnrolCause::Proof: return "a request at the enrolment port is not signed by its keys";
    case EnrolCause::Refused: break;  // a line of its own
  }
  return "the enrolment port has trouble";
}

// The socket has no TLS and no proof.
std::string_view text_at_socket(EnrolCause cause) {
  switch (cause) {
    case EnrolCause::Accept: return "the system gives the enrolment socket no connection";
    case EnrolCause::Full: return "the enrolment socket has as many connections as it serves";
    case EnrolCause::AddressFull:
      return "one user, or one block of uids, has its share of the enrolment socket";
    case EnrolCause::Late: return "a connection to the enrolment socket was not done in time";
    case EnrolCause::Broken: return "a connection to the enrolment socket ended before its request";
    case EnrolCause::Request: return "a request at the enrolment socket cannot be read";
    case EnrolCause::Refused:
    case EnrolCause::Handshake:
    case EnrolCause::Proof: break;
  }
  return "the enrolment socket has trouble";
}

}  // namespace

void EnrolTrouble::note(EnrolCause cause, std::string_view last) {
  if (cause == EnrolCause::Refused) {
    const char* door = door_ == Door::Port ? "enrolment port, from " : "enrolment socket, from ";
    return refusals_.note(door + without_controls(last));
  }
  Count& count = counts_[static_cast<std::size_t>(cause)];
  ++count.since;
  const BootTime now = clock_.now().boot;
  if (count.written && now - count.at < kQuiet) return;
  log::warn(door_ == Door::Port ? text_of(cause) : text_at_socket(cause),
            {{"last", without_controls(last)}, {"times", count.since}});
  count = {.since = 0, .written = true, .at = now};
}

}  // namespace muster::controller
