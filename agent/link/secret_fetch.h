// SecretFetch asks the controller for the secrets of a start (AgentService.FetchSecrets). The Agent
// creates it, and shares it with the threads that prepare starts. Thread-safe; fetch() blocks, at
// most kSecretsTime. stop() ends all calls.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "agent/launch/secrets_by_name.h"
#include "agent/link/open_calls.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr Duration kSecretsTime = std::chrono::seconds(20);

class SecretFetch {
 public:
  struct Options {
    std::function<Result<rpc::Endpoint>()> endpoint;
    // Identity of this agent: cluster, node, instance. Also while the controller is away. Empty:
    // not joined yet.
    std::function<std::optional<v1::LogHello>()> self;
  };
  explicit SecretFetch(Options options) : options_(std::move(options)) {}
  ~SecretFetch() { stop(); }
  SecretFetch(const SecretFetch&) = delete;
  SecretFetch& operator=(const SecretFetch&) = delete;

  // All that the attempt gets. InvalidArgument: they are too large for a process. Unreachable:
  // another start may succeed.
  Result<SecretsByName> fetch(const v1::NodeLaunch& order);
  void stop() { calls_.stop(std::chrono::seconds(10)); }

 private:
  Result<v1::FetchSecretsResponse> ask(const v1::FetchSecretsRequest& request,
                                       const std::string& doing);

  const Options options_;
  OpenCalls calls_;
};

}  // namespace muster::agent
