// Connections counts the TCP connections that gRPC serves, and says whether there may be one more.
// The Server owns it. Thread-safe: the acceptor's loop adds connections, gRPC's threads say which
// ones have made a call.
//
// gRPC 1.51 owns a connection's descriptor from the hand-over on, and does not say when it closes
// it. So the number is kept with the inode of its socket. No two open sockets have the same inode:
// when the number has another one, or is not open, the connection is closed. This is checked only
// where a bound would forbid a connection, and at most every kCheckApart.
//
// gRPC does not say either when a handshake is finished. A connection counts as unfinished until
// its first call whose certificate was accepted, or until gRPC's own time for a handshake is over:
// what is open then has finished it.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
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
  // A call came over the connection, and its caller may make it.
  void has_called(const Peer& peer);

  // For people: "576 of 1024 connections over TCP ...", which bound it is and what it is for.
  [[nodiscard]] std::string text_of(Full full) const;
  [[nodiscard]] std::size_t open() const;        // as last checked
  [[nodiscard]] std::size_t unfinished() const;  // as last checked

 private:
  struct Connection {
    ino_t inode = 0;
    Peer peer;
    BootTime since;
    bool finished = false;
  };
  using Table = std::unordered_map<int, Connection>;

  [[nodiscard]] std::optional<Full> full(const Peer& peer) const MUSTER_REQUIRES(mutex_);
  void check(BootTime now) MUSTER_REQUIRES(mutex_);
  void finish(int fd, Connection& connection) MUSTER_REQUIRES(mutex_);
  void forget(int fd) MUSTER_REQUIRES(mutex_);

  const ConnectionBounds bounds_;
  const Duration handshake_most_;
  mutable Mutex mutex_;
  Table open_ MUSTER_GUARDED_BY(mutex_);
  std::set<int> unfinished_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::array<std::uint8_t, 16>, std::size_t> of_sender_ MUSTER_GUARDED_BY(mutex_);
  std::optional<BootTime> checked_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
