// Hears from the kernel (rtnetlink(7)) that an interface, an address, a route or a rule is another
// than before: what there is now is read anew (interfaces.h, routes.h). Owns the socket, whose
// descriptor is readable when there is news. One strand; never blocks. Needs no rights.
#pragma once

#include <utility>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class InterfaceNews {
 public:
  static Result<InterfaceNews> open();
  [[nodiscard]] int fd() const { return socket_.get(); }
  // Takes what the kernel has said so far. What it says does not matter, nor that some of it was
  // lost.
  void take();

 private:
  explicit InterfaceNews(io::UniqueFd socket) : socket_(std::move(socket)) {}
  io::UniqueFd socket_;
};

}  // namespace muster::agent
