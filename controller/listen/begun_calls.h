// BegunCalls is the book of calls whose headers were let through and whose request is not whole
// yet, by connection. Connections owns it. No thread of its own, and no lock.
//
// gRPC 1.51 takes in a request of whatever length its sender announces (up to 4 GiB), and asks
// whether it is too long when it is whole. Nor does it say that an unfinished call was taken back:
// such a call stays in the book until its connection ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/time.h"
#include "common/rpc/live_tls.h"

namespace muster::controller {

class BegunCalls {
 public:
  // Calls of one name, on all of its connections: some 5 KiB of memory each.
  static constexpr std::size_t kOfOwnerMost = 1'024;

  struct Of {
    std::string owner;
    std::size_t count = 0;
    BootTime last;  // when the last one of them began
    // What the connection had received when there was one for the first time. Empty: not known.
    std::optional<std::uint64_t> received = {};
  };
  using Table = std::map<rpc::ConnectionId, Of>;

  // False: `owner` has too many.
  [[nodiscard]] bool begin(rpc::ConnectionId connection, const std::string& owner, BootTime now);
  // The request of one of them is whole.
  void whole(rpc::ConnectionId connection);
  void forget(rpc::ConnectionId connection);

  // Null: every request of the connection is whole.
  [[nodiscard]] Of* find(rpc::ConnectionId connection);
  [[nodiscard]] const Table& all() const { return of_connection_; }

 private:
  void drop(const std::string& owner, std::size_t count);

  Table of_connection_;
  std::map<std::string, std::size_t> of_owner_;
};

}  // namespace muster::controller
