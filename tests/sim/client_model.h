// The simulated clients and the operator. World owns the ClientModel. It runs on its history's one
// thread.
//
// Clients submit jobs, and submit again with the same request id when no answer arrives. They
// cancel jobs, and in the end they declare nodes dead that will not come back. Clients never crash;
// their requests and answers may get lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "controller/core/turn.h"
#include "tests/sim/scenario.h"

namespace muster::sim {

class World;

class ClientModel {
 public:
  explicit ClientModel(World& world) : world_(world) {}
  void begin();
  void declare_dead(const NodeName& node);
  // The clients learn what the journal does not have any more, and submit it again.
  void journal_end_lost();
  // Cancels jobs that need more nodes than are left; they would correctly wait for ever.
  void cancel_wider_than(std::uint32_t nodes);
  // Every submission was answered, and every job of a submission has durably ended.
  [[nodiscard]] bool done() const;

 private:
  struct Request {
    const JobPlan* plan = nullptr;
    std::uint32_t tries = 0;
    bool given_up = false;
    std::optional<JobId> job;
    bool cancelling = false, cancel_answered = false;
    std::string first;  // For a stage that another stage submits: the first stage of its chain.
  };
  void submit(const std::string& name);
  void submit_once(const std::string& name);
  // The stages after the first one of a chain; their ids follow the id of the first.
  [[nodiscard]] std::vector<const JobPlan*> behind(const JobPlan& first) const;
  [[nodiscard]] core::SubmitJob submission(const JobPlan& plan);
  void learn(const std::string& name, const JobId& job);
  enum class Named : std::uint8_t { Known, NotYet, Never };
  // Whether the jobs that this one waits for have ids by now.
  [[nodiscard]] Named named_before(const JobPlan& plan) const;
  void answered(const std::string& name, const core::Answer& answer);
  void cancel(const std::string& name);
  // Sends the input. `leaves` runs when the reply is sent; `arrives` runs when the answer arrives,
  // if it does.
  void send(core::Input input, std::function<void(const core::Answer&)> leaves,
            std::function<void(const core::Answer&)> arrives);

  World& world_;
  std::uint64_t next_id_ = 1;
  std::map<std::string, Request> requests_;
};

}  // namespace muster::sim
