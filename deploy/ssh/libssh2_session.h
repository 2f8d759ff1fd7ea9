// A Session by libssh2 in this process: one channel for each command. See session.h for what a
// session promises.
#pragma once

#include <memory>

#include "deploy/ssh/session.h"
#include "deploy/ssh/wire.h"

namespace muster::ssh {

class Libssh2Session final : public Session {
 public:
  // The wire is authenticated. `name` is the host for messages.
  Libssh2Session(std::unique_ptr<Wire> wire, std::string name, Transport transport)
      : wire_(std::move(wire)), name_(std::move(name)), transport_(std::move(transport)) {}

  Result<Output> run(const Command& command, Source input, Duration timeout) override;
  [[nodiscard]] const Transport& transport() const override { return transport_; }

 private:
  Result<Output> run_open(const Command& command, Source input);
  std::unique_ptr<Wire> wire_;
  std::string name_;
  Transport transport_;
};

}  // namespace muster::ssh
