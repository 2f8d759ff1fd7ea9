// InterfaceNews receives the kernel's notice (rtnetlink(7)) that an interface, an address, a route
// or a rule has changed. Agent (agent/loop.h) owns it. It runs on the agent's loop and never
// blocks.
//
// After a notice the agent reads the network again (interfaces.h, routes.h). It owns the socket,
// whose descriptor is readable when there is a notice. It needs no rights.
#pragma once

#include <utility>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class InterfaceNews {
 public:
  static Result<InterfaceNews> open();
  [[nodiscard]] int fd() const { return socket_.get(); }
  // Drops the notices so far. Their content does not matter, and lost ones do not matter either.
  void take();

 private:
  explicit InterfaceNews(io::UniqueFd socket) : socket_(std::move(socket)) {}
  io::UniqueFd socket_;
};

}  // namespace muster::agent
