// What is true, kept by the harness beside the models: of each attempt what its ranks did, of the
// journal what is durable. Invariants compare the two.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/core/event.h"
#include "tests/sim/machine.h"

namespace muster::sim {

struct Death {
  std::int32_t code = 0, signal = 0;
  DeathCause cause{};
};

struct AttemptTruth {
  std::optional<Time> first_exec;
  std::map<std::uint32_t, std::uint64_t> execd;  // rank -> pid
  std::map<std::uint32_t, Death> deaths;
  std::set<NodeName> execd_on;
  bool harmed = false;  // the storm took something of it before a rank could die of it
};

struct DurableAttempt {
  std::vector<core::PlacedNode> nodes;
  Time placed_at = 0;  // when it was accepted
  bool broke = false, ended = false;
};
struct DurableJob {
  RequestId request;
  std::map<AttemptNo, DurableAttempt> attempts;
  std::optional<core::Outcome> outcome;
  bool cancel = false, archived = false;
};

struct Book {
  std::map<agent::RunKey, AttemptTruth> attempts;
  std::map<NodeName, Time> struck;    // last time that a node lost its power or its state directory
  std::map<NodeName, Time> last_ack;  // last time that a heartbeat's acknowledgement left for it
  std::set<JobId> cancel_asked;
  std::map<RequestId, JobId> replied;

  std::map<JobId, DurableJob> durable;
  std::set<std::string> facts;  // natural keys, durable
  std::set<std::string> acked;  // natural keys that an agent was acknowledged

  // Durably, also in a journal's end that was lost since.
  std::set<agent::RunKey> once_placed, once_broken;
  std::set<JobId> once_succeeded;
  struct Submission {
    std::string name;
    std::vector<JobId> after;
  };
  std::map<JobId, Submission> submissions;
  struct Chain {
    std::set<JobId> jobs;  // that are durable
    std::uint32_t count = 0;
  };
  std::map<JobId, Chain> chains;
  std::set<JobId> chains_cut;  // the journal's end was lost in the middle of their submission

  [[nodiscard]] bool is_broken(const agent::RunKey& run) const;
  // The youngest attempt of this job that has exec'd a rank; 0: none.
  [[nodiscard]] AttemptNo newest_execd(const JobId& job) const;
  void take(const std::vector<core::Event>& events, Time now);
  // The journal's end was lost: what is durable is what `left` says, and what was archived.
  void forget_all_but(const std::vector<core::Event>& left);
};

// "job.attempt node kind rank", of a fact as it travels and of the event that it becomes. Empty:
// not a fact.
std::string natural_key(const NodeName& node, const v1::Fact& fact);
std::string natural_key(const core::EventBody& body);

}  // namespace muster::sim
