// Clients and the operator: they submit (again, with the same request id, when no answer comes),
// cancel, and in the end declare dead what will not come back. They never crash; their requests and
// answers get lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "controller/core/core.h"
#include "tests/sim/scenario.h"

namespace muster::sim {

class World;

class ClientModel {
 public:
  explicit ClientModel(World& world) : world_(world) {}
  void begin();
  void declare_dead(const NodeName& node);
  // Of what the journal does not have any more they are told, and ask for it again.
  void journal_end_lost();
  // Jobs that want more nodes than there are left would wait for ever, and rightly so.
  void cancel_wider_than(std::uint32_t nodes);
  // Every submission was answered, and every job that came of one has durably ended.
  [[nodiscard]] bool done() const;

 private:
  struct Request {
    const JobPlan* plan = nullptr;
    std::uint32_t tries = 0;
    bool given_up = false;
    std::optional<JobId> job;
    bool cancelling = false, cancel_answered = false;
    std::string first;  // of a stage that another submits: the first of its chain
  };
  void submit(const std::string& name);
  void submit_once(const std::string& name);
  // The stages behind the first of a chain, whose ids follow its own.
  [[nodiscard]] std::vector<const JobPlan*> behind(const JobPlan& first) const;
  [[nodiscard]] core::SubmitJob submission(const JobPlan& plan);
  void learn(const std::string& name, const JobId& job);
  enum class Named : std::uint8_t { Known, NotYet, Never };
  // The jobs that this one waits for: whether they have ids by now.
  [[nodiscard]] Named named_before(const JobPlan& plan) const;
  void answered(const std::string& name, const core::Decision& decision);
  void cancel(const std::string& name);
  // The reply, if anything arrives; it runs when the answer is back.
  void send(core::Input input, std::function<void(const core::Decision&)> leaves,
            std::function<void(const core::Decision&)> arrives);

  World& world_;
  std::uint64_t next_id_ = 1;
  std::map<std::string, Request> requests_;
};

}  // namespace muster::sim
