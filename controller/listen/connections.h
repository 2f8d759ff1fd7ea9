// Connections counts the TCP connections that gRPC serves, and says whether there may be one more.
// The Doors and the Server share it. Thread-safe: the acceptor's loop adds connections and watches
// them, gRPC's threads say which ones begin and make a call.
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
// in the time of a handshake, and those whose certificate does not count any more. An owner never
// has more than a share. So one certificate cannot keep all places, whatever its role.
//
// gRPC holds what it has received of a request until the request is whole, however long that takes
// and however long the request is. watch() bounds it: while a connection has a request that is not
// whole, what it receives is counted, by the kernel, and beyond a bound the connection is ended. So
// is the one that has received most, where all connections of one owner have received more than
// theirs; where all those without an owner have, it is one of the sender who has sent most. A
// message of a stream is bounded in the same way: from one message that is whole to the next one.
#pragma once

#include <sys/types.h>

#include <algorithm>
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
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/pki/identity.h"
#include "controller/listen/begun_calls.h"
#include "controller/listen/peer.h"
#include "controller/listen/received.h"

namespace muster::controller {

struct ConnectionBounds {
  std::size_t all = 0;
  std::size_t unfinished = 0;
  std::size_t unfinished_of_sender = 0;  // Peer::sender()
  // Of one certificate's name.
  std::size_t of_user = 0;
  std::size_t of_node = 0;
};
// Whose connection it is, by the certificate of a call.
struct ConnectionOwner {
  std::string name;      // for people: "user 'ann'"; connections of one name have one share
  std::size_t most = 0;  // connections of that name
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
  // At the speed of a fast network, some 100 MB come in between.
  static constexpr Duration kWatchApart = std::chrono::milliseconds(100);
  // Between two looks at the streams of so many connections. The two system calls for one were
  // measured as 1.4 us: up to 2,000 are looked at every time, and more of them cost no more of a
  // processor. In return a sender of many has more time between two looks.
  static constexpr Duration streams_apart(std::size_t connections) {
    return std::max<Duration>(kWatchApart, connections * std::chrono::microseconds(50));
  }
  // Bytes received while a request is not whole: of one connection, and of all of one owner's, or
  // of all that are nobody's yet. The longest request has 9 MiB (rpc::kRequestBytesMax); who sends
  // one that is a little too long gets an answer.
  static constexpr std::uint64_t kUnreadOfOneMost = 12 << 20;
  static constexpr std::uint64_t kUnreadMost = 4 * kUnreadOfOneMost;
  // How long a connection may be nobody's: enough for a request of 9 MiB at 256 kbit/s.
  static constexpr Duration kNobodysMost = std::chrono::minutes(5);

  // `handshake_most`: how long gRPC lets a handshake take.
  Connections(ConnectionBounds bounds, Duration handshake_most,
              std::function<std::uint64_t(int fd)> received = received_by)
      : bounds_(bounds), handshake_most_(handshake_most), received_(std::move(received)) {}

  // Counts the connection, or returns the bound that forbids it. Call it before gRPC gets the
  // descriptor: afterwards the number may already be another file's.
  std::optional<Full> add(int fd, const Peer& peer, BootTime now);
  // With the bound of its role. `revoked` and `keeps` are empty.
  [[nodiscard]] ConnectionOwner owner(const pki::Identity& caller) const;
  // A call of this owner begins, and nothing of its request was read. ResourceExhausted: he has too
  // many connections, or calls whose requests are not whole; the call must be refused.
  [[nodiscard]] Result<void> begin(rpc::ConnectionId connection, const ConnectionOwner& owner,
                                   BootTime now);
  // A call has come as far as its handler, with its request if it has one. At the first one of a
  // connection `owner_of` is called, with the lock of this object. `connection` is null, or keeps
  // its id from being given to another connection.
  struct Called {
    Peer peer;
    std::shared_ptr<const void> connection;
  };
  void has_called(const Called& call, const std::function<ConnectionOwner()>& owner_of);
  // That call is a stream of messages. `message_came` is set when one is whole, and the stream is
  // over when nobody else has it any more. Whatever the connection receives counts as its message.
  void has_stream(rpc::ConnectionId connection,
                  const std::shared_ptr<std::atomic<bool>>& message_came);
  // Ends connections that hold too much, or have been nobody's for too long. Call it every
  // kWatchApart.
  void watch(BootTime now);

  // For people: which connections were ended since the last call, and why; at most kEndedMost.
  struct Ended {
    std::string of;  // whose: lines of the same one are alike
    std::string text;
  };
  static constexpr std::size_t kEndedMost = 64;
  [[nodiscard]] std::vector<Ended> take_ended();
  // For people: "576 of 1024 connections over TCP ...", which bound it is and what it is for.
  [[nodiscard]] std::string text_of(Full full) const;
  [[nodiscard]] std::size_t open() const;        // as last checked
  [[nodiscard]] std::size_t unfinished() const;  // as last checked

 private:
  struct Stream {
    std::weak_ptr<std::atomic<bool>> message_came;
    std::uint64_t received = 0;  // by the connection, when its last message was whole
  };
  struct Connection {
    ino_t inode = 0;
    Peer peer;
    BootTime since;
    std::optional<ConnectionOwner> owner = {};  // from its first call on
    std::shared_ptr<const void> id = {};        // as the owner
    std::vector<Stream> streams = {};
  };
  using Table = std::unordered_map<int, Connection>;
  struct Unread {
    std::uint64_t bytes = 0;
    int fd = -1;
  };

  [[nodiscard]] std::optional<Full> full(const Peer& peer) const MUSTER_REQUIRES(mutex_);
  void check(BootTime now) MUSTER_REQUIRES(mutex_);
  // Where it seems so, closed ones are forgotten first.
  bool has_at_least(const std::string& owner, std::size_t count) MUSTER_REQUIRES(mutex_);
  void watch_nobodys(BootTime now) MUSTER_REQUIRES(mutex_);
  void watch_owned(BootTime now) MUSTER_REQUIRES(mutex_);
  void watch_streams(BootTime now) MUSTER_REQUIRES(mutex_);
  void end_largest(std::vector<Unread> unread) MUSTER_REQUIRES(mutex_);
  void end_beyond(const Unread& one, std::uint64_t all) MUSTER_REQUIRES(mutex_);
  void end_because(int fd, const std::string& why) MUSTER_REQUIRES(mutex_);
  void leave_unfinished(int fd, const Peer& peer) MUSTER_REQUIRES(mutex_);
  void end(int fd) MUSTER_REQUIRES(mutex_);
  void forget(int fd) MUSTER_REQUIRES(mutex_);

  const ConnectionBounds bounds_;
  const Duration handshake_most_;
  const std::function<std::uint64_t(int fd)> received_;
  mutable Mutex mutex_;
  Table open_ MUSTER_GUARDED_BY(mutex_);
  std::set<int> unfinished_ MUSTER_GUARDED_BY(mutex_);
  std::set<int> with_streams_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::array<std::uint8_t, 16>, std::size_t> of_sender_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::set<int>> of_owner_ MUSTER_GUARDED_BY(mutex_);  // by its name
  std::unordered_map<rpc::ConnectionId, int> of_id_ MUSTER_GUARDED_BY(mutex_);
  BegunCalls begun_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Ended> ended_ MUSTER_GUARDED_BY(mutex_);
  std::optional<BootTime> checked_ MUSTER_GUARDED_BY(mutex_);
  std::optional<BootTime> streams_watched_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
