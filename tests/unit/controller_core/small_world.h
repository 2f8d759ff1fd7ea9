// A controller core that a test drives. A test owns it. It runs on the test's thread.
//
// Ledger, presence and clock are values. Each input is settled to the fixed point, and every event
// is kept.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/proto/proto_time.h"
#include "controller/core/dump.h"
#include "controller/core/turn.h"

namespace muster::core {

struct SmallWorld : State, private TurnWatcher {
  Now now{.wall = WallTime(std::chrono::seconds(1'800'000'000)),
          .boot = BootTime(std::chrono::hours(1))};
  Limits limits;
  std::vector<std::pair<JournalIndex, Event>> journal;
  std::uint64_t connections = 0;

  SmallWorld() { presence.listening_since = now.boot; }

  void accept(const Decision& decision) {
    for (const EventBody& body : decision.events) {
      journal.emplace_back(JournalIndex(journal.size() + 1), Event{.at = now.wall, .body = body});
      apply(ledger, journal.back().first, journal.back().second);
      last = journal.back().first;
    }
  }
  // Proposes until nothing is proposed. Every proposal must be accepted, or the shell would loop
  // for ever.
  void settle() {
    do {
      const Turned turned = turn(
          *this,
          {.items = {}, .now = now, .limits = limits, .judge_until = now.boot, .rounds_max = 50},
          *this);
      ASSERT_FALSE(turned.restless) << "propose() does not settle";
      ASSERT_TRUE(turned.moot.empty()) << "a proposal came to nothing: " << turned.moot.front();
      if (turned.wake_at && !placing_goes_on) {
        ASSERT_GT(*turned.wake_at, now.boot);
      }
    } while (placing_goes_on);
  }
  Decision put(const Input& input) {
    Decision decision = decide(ledger, presence, input, now, limits);
    accept(decision);
    settle();
    return decision;
  }
  void after(const Row& row, const Ledger& /*ledger*/) override {
    journal.emplace_back(row.index, row.event);
  }
  void see(const Observation& observation) {
    observe(presence, ledger, observation, now);
    settle();
  }
  void pass(Duration time) {
    now.wall += time;
    now.boot += time;
  }

  static v1::Inventory inventory(std::uint32_t devices, const std::string& address,
                                 const std::string& type = "cpu") {
    v1::Inventory inventory;
    inventory.set_address(address);
    v1::NetworkInterface& network = *inventory.add_interfaces();
    network.set_name("eth0");
    network.add_addresses(address);
    for (std::uint32_t id = 0; id < devices; ++id) {
      inventory.add_devices()->set_id(id);
      inventory.mutable_devices(static_cast<int>(id))->set_type(type);
    }
    return inventory;
  }
  void node(const std::string& name, std::uint32_t devices, const std::string& boot = "b1",
            const std::string& instance = "i1", std::vector<v1::PresentAttempt> present = {}) {
    const Decision decision = put(RegisterNode{.node = NodeName(name),
                                               .instance = InstanceId(instance),
                                               .boot_id = BootId(boot),
                                               .inventory = inventory(devices, name),
                                               .version = "test"});
    if (!decision.refusal) {
      see(Connected{.node = NodeName(name),
                    .connection = ConnectionId(++connections),
                    .instance = InstanceId(instance),
                    .present = std::move(present),
                    .boot_id = BootId(boot)});
    }
  }
  static v1::JobSpec spec(const std::string& name, std::uint32_t nodes, std::uint32_t devices) {
    v1::JobSpec spec;
    spec.set_name(name);
    spec.mutable_resources()->set_nodes(nodes);
    spec.mutable_resources()->set_devices(devices);
    spec.mutable_resources()->set_type("auto");
    spec.mutable_launch()->set_lockstep(true);
    spec.mutable_checkpoint()->set_layout("megatron");
    spec.mutable_success()->set_exit0(true);
    return spec;
  }
  // A spec and what the submission would work out from it.
  struct Given {
    v1::JobSpec spec;
    v1::ResolvedSpec resolved = {};
  };
  // schedule.after of the tests' specs has ids.
  static v1::ResolvedSpec resolved(const v1::JobSpec& spec) {
    v1::ResolvedSpec made;
    *made.mutable_after() = spec.schedule().after();
    return made;
  }
  Decision submit(const std::string& id, const Given& what, const std::string& request = "") {
    return put(SubmitJob{.job = JobId(id),
                         .request_id = RequestId(request),
                         .spec = what.spec,
                         .resolved = what.resolved,
                         .spec_hash = "hash"});
  }
  Decision submit(const std::string& id, const v1::JobSpec& what, const std::string& request = "") {
    return submit(id, Given{.spec = what, .resolved = resolved(what)}, request);
  }
  const JobRecord& job(const std::string& id) const { return ledger.jobs.at(JobId(id)); }

  v1::Fact fact(const std::string& id, std::uint32_t attempt, Duration offset = {}) const {
    v1::Fact fact;
    fact.set_job_id(id);
    fact.set_attempt(attempt);
    *fact.mutable_at() = to_proto(now.wall + offset);
    *fact.mutable_age() = to_proto(std::max(-offset, Duration::zero()));
    return fact;
  }
  Decision report(const std::string& node, v1::Fact what, const std::string& instance = "i1") {
    return put(ReportFact{
        .node = NodeName(node), .instance = InstanceId(instance), .fact = std::move(what)});
  }
  Decision started(const std::string& id, std::uint32_t attempt, const std::string& node) {
    v1::Fact what = fact(id, attempt);
    what.mutable_started();
    return report(node, std::move(what));
  }
  Decision exited(const std::string& id, std::uint32_t attempt, const std::string& node,
                  std::uint32_t rank, int code, int signal = 0, Duration offset = {}) {
    v1::Fact what = fact(id, attempt, offset);
    what.mutable_exited()->set_rank(rank);
    what.mutable_exited()->set_code(code);
    what.mutable_exited()->set_signal(signal);
    return report(node, std::move(what));
  }
  Decision swept(const std::string& id, std::uint32_t attempt, const std::string& node,
                 v1::SweptWhy why = v1::SWEPT_WHY_ENDED) {
    v1::Fact what = fact(id, attempt);
    what.mutable_swept()->set_why(why);
    return report(node, std::move(what));
  }
  Decision logs(const std::string& id, std::uint32_t attempt, const std::string& node) {
    return put(ReportLogsCollected{
        .job = JobId(id), .attempt = AttemptNo(attempt), .node = NodeName(node)});
  }
};

}  // namespace muster::core
