// What is true, recorded by the harness: what the ranks of each attempt did, and what the journal
// has durably. Watch owns the Book. It runs on its history's one thread.
//
// Invariants compare the two.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/core/model/event.h"
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
  std::map<NodeName, Time> execd_on;  // when its first rank there was exec'd
  bool harmed = false;  // the storm removed something of it before a rank could die of it
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
  // Last time that a node lost its power or its state directory.
  std::map<NodeName, Time> struck;
  // Last time that a heartbeat's acknowledgement was sent to it.
  std::map<NodeName, Time> last_ack;
  // What each node has uploaded without a problem; with `seal`: the mark.
  std::map<UploadTask, std::set<NodeName>> uploaded;
  std::set<JobId> cancel_asked;
  std::map<RequestId, JobId> replied;

  std::map<JobId, DurableJob> durable;
  std::set<std::string> facts;  // natural keys, durable
  std::set<std::string> acked;  // natural keys that an agent was acknowledged

  // Durable now, or durable in an end of the journal that was lost since.
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
  std::set<JobId> chains_cut;  // The end of the journal was lost in the middle of their submission.

  [[nodiscard]] bool is_broken(const agent::RunKey& run) const;
  // The end of every rank of the node's part is durable.
  [[nodiscard]] bool has_exited(const agent::RunKey& run, const NodeName& node) const;
  // The newest attempt of this job that has exec'd a rank; 0: none.
  [[nodiscard]] AttemptNo newest_execd(const JobId& job) const;
  void take(const std::vector<core::Event>& events, Time now);
  // The end of the journal was lost: only the events in `left`, and what was archived, stay
  // durable.
  void forget_all_but(const std::vector<core::Event>& left);
};

// "job.attempt node kind rank", for a fact as it is sent and for the event that it becomes. Empty:
// it is not a fact.
std::string natural_key(const NodeName& node, const v1::Fact& fact);
std::string natural_key(const core::EventBody& body);

}  // namespace muster::sim
