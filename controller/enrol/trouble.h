// Trouble writes what goes wrong at the enrolment port, or at the enrolment socket, to the
// controller's log: for each cause the first time at once, and then at most one line in kQuiet with
// the number since. A refused request has its own line, as a refused call has (Refusals): who tried
// to join with what is not lost in a number. Nobody who reaches the port can fill the log. The
// port, or the socket, owns it, on its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/time.h"
#include "controller/access/refusals.h"

namespace muster::controller {

enum class EnrolCause : std::uint8_t {
  Accept,       // the system gave no connection (EMFILE)
  Full,         // too many connections
  AddressFull,  // too many of one address; at the socket: of one user
  Handshake,    // no TLS 1.3, or not to the end
  Late,         // not done within its time
  Broken,       // the connection ended before the request did
  Request,      // no request that can be read
  Proof,        // not signed by its keys
  Refused,      // a sound request that the controller refuses
};
inline constexpr std::size_t kEnrolCauses = 9;

class EnrolTrouble {
 public:
  static constexpr Duration kQuiet = std::chrono::minutes(10);

  enum class Door : std::uint8_t { Port, Socket };

  explicit EnrolTrouble(const Clock& clock, Door door = Door::Port)
      : clock_(clock), door_(door), refusals_(clock) {}
  // `last` is what is said of this one: an address, a sentence.
  void note(EnrolCause cause, std::string_view last);

 private:
  struct Count {
    std::uint64_t since = 0;  // not in the log yet
    bool written = false;
    BootTime at{};  // when it was written last
  };
  const Clock& clock_;
  const Door door_;
  Refusals refusals_;
  std::array<Count, kEnrolCauses> counts_;
};

}  // namespace muster::controller
