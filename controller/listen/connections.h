// Connections counts the TCP connections that gRPC serves, and says whether there may be one more.
// The Server owns it. Thread-safe: the acceptor's loop adds connections, gRPC's threads say which
// ones have made a call.
//
// gRPC 1.51 owns a connection's descriptor from the hand-over on, and does not say when it closes
// it. So the number is kept with the inode of its socket. No two open sockets have the same inode:
// when the number has another one, or is not open, the connection is closed. This is checked only
// where a bound would forbid a connection, and at most every kCheckApart.
//
// gRPC does not say either when a handshake is finished, or whose connection it is. A connection
// counts as unfinished until its first call whose certificate was accepted; from then on it is its
// owner's.
//
// Where a bound would forbid a connection, others are ended first: those that have had no such call
// in the time of a handshake, those whose certificate does not count any more, and, where all
// places are taken, the newest ones of an owner who has more than a share. So one certificate
// cannot keep all places, whatever its role.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "common/base/mutex.h"
#include "common/base/time.h"
#include "controller/listen/peer.h"

namespace muster::controller {

struct ConnectionBounds {
  std::size_t all = 0;
  std::size_t unfinished = 0;
  std::size_t unfinished_of_sender = 0;  // Peer::sender()
  // Shares of one certificate's name.
  std::size_t of_user = 0;
  std::size_t of_node = 0;
};
// Whose connection it is, by the certificate of a call.
struct ConnectionOwner {
  std::string name;      // for people: "user 'ann'"; connections of one name have one share
  std::size_t most = 0;  // of it
  // Becomes true when the certificate does not count any more. Null: it always counts.
  std::shared_ptr<const std::atomic<bool>> revoked = {};
  std::shared_ptr<void> keeps =
      {};  // whatever `revoked` needs, as long as the connection is counted
};
// For a process that may have so many descriptors, of which `others` are for connections that are
// not counted here. The rest is for the unix socket, the journal, logs and files.
ConnectionBounds bounds_for(std::size_t descriptors, std::size_t others);

class Connections {
 public:
  enum class Full : std::uint8_t { All, Unfinished, UnfinishedOfSender };
  static constexpr Duration kCheckApart = std::chrono::milliseconds(50);

  // `handshake_most`: how long gRPC lets a handshake take.
  Connections(ConnectionBounds bounds, Duration handshake_most)
      : bounds_(bounds), handshake_most_(handshake_most) {}

  // Counts the connection, or returns the bound that forbids it. Call it before gRPC gets the
  // descriptor: afterwards the number may already be another file's.
  std::optional<Full> add(int fd, const Peer& peer, BootTime now);
  // A call came over the connection, and its caller may make it. At its first one `owner_of` is
  // called, with the lock of this object.
  void has_called(const Peer& peer, const std::function<ConnectionOwner()>& owner_of);

  // For people: whose connections were ended since the last call, because of a share. Empty:
  // nobody's.
  [[nodiscard]] std::string take_ended();
  // For people: "576 of 1024 connections over TCP ...", which bound it is and what it is for.
  [[nodiscard]] std::string text_of(Full full) const;
  [[nodiscard]] std::size_t open() const;        // as last checked
  [[nodiscard]] std::size_t unfinished() const;  // as last checked

 private:
  struct Connection {
    ino_t inode = 0;
    Peer peer;
    BootTime since;
    std::optional<ConnectionOwner> owner = {};  // from its first call on
  };
  using Table = std::unordered_map<int, Connection>;

  [[nodiscard]] std::optional<Full> full(const Peer& peer) const MUSTER_REQUIRES(mutex_);
  void check(BootTime now) MUSTER_REQUIRES(mutex_);
  void end_beyond_shares() MUSTER_REQUIRES(mutex_);
  void leave_unfinished(int fd, const Peer& peer) MUSTER_REQUIRES(mutex_);
  void end(int fd) MUSTER_REQUIRES(mutex_);
  void forget(int fd) MUSTER_REQUIRES(mutex_);

  const ConnectionBounds bounds_;
  const Duration handshake_most_;
  mutable Mutex mutex_;
  Table open_ MUSTER_GUARDED_BY(mutex_);
  std::set<int> unfinished_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::array<std::uint8_t, 16>, std::size_t> of_sender_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::set<int>> of_owner_ MUSTER_GUARDED_BY(mutex_);  // by its name
  std::string ended_ MUSTER_GUARDED_BY(mutex_);
  std::optional<BootTime> checked_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
