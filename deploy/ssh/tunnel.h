// A Tunnel carries the bytes of one TCP connection through a jump host: a direct-tcpip channel of
// libssh2 on one side, a socket of this process on the other. It owns the jump host's Wire and a
// thread, which alone uses the Wire.
//
// The thread ends when either side ends, and the destructor waits for it: it closes the socket pair
// first, so that takes a moment at most. There is no deadline inside: the session that uses the
// socket has one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "deploy/ssh/wire.h"

namespace muster::ssh {

struct TunnelEnd {
  io::UniqueFd socket;  // for the next session; it does not block
  std::unique_ptr<Below> tunnel;
};

// Opens the channel by the Wire's deadline. `jump` is the jump host's name for messages. Errors are
// reasons without a context. NotAllowed: the jump host forwards no connections (AllowTcpForwarding,
// PermitOpen). Unreachable: it cannot connect to `host`.
Result<TunnelEnd> open_tunnel(std::unique_ptr<Wire> wire, const std::string& jump,
                              const std::string& host, std::uint16_t port);

}  // namespace muster::ssh
