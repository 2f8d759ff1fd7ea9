// Connection is one TCP connection with TLS, in blocking steps that share one deadline. client.cc
// makes and uses it. Internal to common/enrol; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/enrol/tls.h"
#include "common/io/unique_fd.h"

namespace muster::enrol {

class Connection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Connects to the first address of the host that answers, and shakes hands. `cancel` as in Ask.
  // Errors are reasons without a context: Unreachable, TimedOut, InvalidArgument (`address` is no
  // HOST:PORT), Unsupported (the other end is not the controller), Internal.
  static Result<Connection> open(const std::string& address, Deadline until, int cancel,
                                 TrustedCas& trusted);

  [[nodiscard]] SSL* tls() const { return tls_.get(); }
  Result<void> write(std::string_view bytes);
  // Exactly so many bytes.
  Result<std::string> read(std::size_t size);
  // Sends the end of TLS, if there is room.
  void close();

 private:
  Connection(io::UniqueFd socket, Deadline until, int cancel)
      : socket_(std::move(socket)), until_(until), cancel_(cancel) {}
  // Repeats `operation` until libssl has finished it.
  Result<void> finish(const std::function<int()>& operation);

  io::UniqueFd socket_;
  Deadline until_;
  int cancel_;
  TlsContext context_;
  TlsConnection tls_;  // uses the two above
};

}  // namespace muster::enrol
