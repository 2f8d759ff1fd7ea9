// Makes listening sockets, of TCP and of unix paths. Stateless; the caller owns what is returned.
// They are non-blocking, and closed on exec. Any thread.
//
// Errors are reasons alone: the caller knows what it wanted. Of an address that is taken, or not
// this machine's, they say so; else they have the system's reason.
#pragma once

#include <sys/socket.h>

#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::controller {

struct ListeningSocket {
  io::UniqueFd fd;
  int port = 0;  // 0 for a unix socket
};

// `address`: "127.0.0.1:80", "[::1]:80", "%interface" included, no names; port 0 is a free one. Of
// "0.0.0.0" and "::" each means all addresses of both families, as it does in gRPC.
Result<ListeningSocket> listen_tcp(const std::string& address);
Result<ListeningSocket> listen_tcp(const sockaddr_storage& address);

// Replaces a socket at the path: the caller has made sure that nobody serves it. Mode 0600.
Result<ListeningSocket> listen_unix(const std::string& path);
// Makes sure of that for as long as the descriptor lives: an exclusive lock of PATH.lock.
Result<io::UniqueFd> lock_unix(const std::string& path);

}  // namespace muster::controller
