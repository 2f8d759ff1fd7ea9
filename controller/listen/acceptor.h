// Acceptor takes connections from listening sockets and hands them on: over TCP within bounds
// (Connections), which it watches, over unix sockets all of them. The Server owns it. begin() and
// stop() are called on one thread; everything else runs on the acceptor's own loop.
//
// gRPC 1.51 can accept itself, but its listener ends for good at the first accept that fails, for
// instance when no descriptor is left. This one goes on: after an error of the process or of the
// system it waits kPause with that socket, and tries again.
//
// A connection beyond the bounds is reset at once, so that it uses neither a descriptor nor a place
// in the backlog. Each bound and each error is one line in the log, and then at most one every
// kLinesApart, with the number of times.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/async/loop.h"
#include "common/base/time.h"
#include "common/io/unique_fd.h"
#include "controller/listen/connections.h"

namespace muster::controller {

class Acceptor {
 public:
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr Duration kLinesApart = std::chrono::minutes(1);

  struct Port {
    io::UniqueFd fd;      // listening, non-blocking
    std::string address;  // for people
    bool counted = true;  // its connections count (TCP)
    // Owns the descriptor from here on. It has flags for gRPC: non-blocking, closed on exec.
    std::function<void(int fd)> hand_over;
  };
  struct Hooks {
    std::function<void(const std::string& line)> warn;
    // accept4(2) of a listening socket. Tests make it fail.
    std::function<int(int fd, sockaddr* peer, socklen_t* size)> accept;
  };

  // `connections` and `clock` must outlive the acceptor.
  Acceptor(std::vector<Port> ports, Connections& connections, const Clock& clock, Hooks hooks);
  ~Acceptor();

  void begin();
  // Closes the listening sockets. After it nothing is handed over any more.
  void stop();

 private:
  struct Source;
  struct Line {
    std::string text;
    std::size_t since = 0;  // times since the last line
  };

  void watch(Source& source);
  void take(Source& source);
  void take_one(Source& source, int fd, const sockaddr_storage& from);
  void watch_connections();
  void pause(Source& source, int error_number);
  void note(const std::string& cause, const std::string& text);
  void summarize();

  Connections& connections_;
  const Clock& clock_;
  const Hooks hooks_;
  async::Loop loop_{"accept"};
  std::vector<std::unique_ptr<Source>> sources_ MUSTER_GUARDED_BY(loop_);
  std::map<std::string, Line> lines_ MUSTER_GUARDED_BY(loop_);  // by cause
  std::unique_ptr<async::Timer> watch_ MUSTER_GUARDED_BY(loop_);
  std::unique_ptr<async::Timer> summary_ MUSTER_GUARDED_BY(loop_);
};

}  // namespace muster::controller
