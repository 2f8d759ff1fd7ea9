// A cluster with one node whose facts a test reports by hand, without an agent. gtest creates the
// fixture for each test. It runs on the test's thread.
//
// Jobs run there until the test reports their end.
#pragma once

#include <future>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {

class HandNodeTest : public ClusterTest {
 protected:
  // Passes in what an agent, or the shell itself, would ask for. Returns when it is durable.
  void put(core::Input input, std::optional<core::Observation> then = {}) {
    std::promise<std::optional<Error>> answered;
    const auto reply = [&](const Outcome& outcome, const View&) {
      answered.set_value(outcome.refusal);
    };
    if (then) {
      controller_->shell->report_and_observe(std::move(input), *std::move(then),
                                             controller_->shell->now(), reply);
    } else {
      controller_->shell->report(std::move(input), controller_->shell->now(), reply);
    }
    const std::optional<Error> refusal = answered.get_future().get();
    ASSERT_FALSE(refusal) << refusal->message;
  }
  // Registers node n1 with two devices. What is placed there runs until a test reports its end.
  void node() {
    const NodeName name("n1");
    put(core::RegisterNode{.node = name,
                           .instance = InstanceId("i1"),
                           .boot_id = BootId("b1"),
                           .inventory = HandAgent::hello("n1", "i1").inventory()},
        core::Connected{.node = name,
                        .connection = ConnectionId(77),
                        .instance = InstanceId("i1"),
                        .boot_id = BootId("b1")});
  }
  // Reports a fact of attempt 1, in the name of n1.
  void report(v1::Fact fact, const std::string& id) {
    fact.set_job_id(id);
    fact.set_attempt(1);
    put(core::ReportFact{
        .node = NodeName("n1"), .instance = InstanceId("i1"), .fact = std::move(fact)});
  }
  void swept(const std::string& id) {
    v1::Fact fact;
    fact.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
    report(fact, id);
  }
  void succeed(const std::string& id) {
    v1::Fact exited;
    exited.mutable_exited()->set_rank(0);
    report(exited, id);
    swept(id);
    EXPECT_EQ(job(id).phase(), v1::JOB_PHASE_SUCCEEDED);
  }
};

}  // namespace muster::controller
