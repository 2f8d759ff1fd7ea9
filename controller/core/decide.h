// The parts of decide(): one overload for each input, called by decide.cc. Pure.
//
// Each overload returns what is accepted as events. An outdated input gives a refusal (clients) or
// nothing (agents, proposals), never an event.
#pragma once

#include "controller/core/core.h"

namespace muster::core {

struct Deciding {
  const Ledger& ledger;
  const Presence& presence;
  Now now;
  const Limits& limits;
};

// decide_client.cc
Decision decide_one(const Deciding& in, const SubmitJob& input);
Decision decide_one(const Deciding& in, const CancelJob& input);
Decision decide_one(const Deciding& in, const DeclareNodeDead& input);
// decide_node.cc
Decision decide_one(const Deciding& in, const DrainNode& input);
Decision decide_one(const Deciding& in, const UndrainNode& input);
Decision decide_one(const Deciding& in, const LabelNode& input);
Decision decide_one(const Deciding& in, const RemoveNode& input);
Decision decide_one(const Deciding& in, const RenameNode& input);
// decide_agent.cc
Decision decide_one(const Deciding& in, const RegisterNode& input);
Decision decide_one(const Deciding& in, const ReportFact& input);
Decision decide_one(const Deciding& in, const ReportLogsCollected& input);
// decide_proposal.cc
Decision decide_one(const Deciding& in, const ProposeOutputsLost& input);
Decision decide_one(const Deciding& in, const ProposeCheckpointLost& input);
Decision decide_one(const Deciding& in, const ProposeSettle& input);
Decision decide_one(const Deciding& in, const ProposePlacement& input);
Decision decide_one(const Deciding& in, const ProposeCheckpoint& input);
Decision decide_one(const Deciding& in, const ProposeBreak& input);
Decision decide_one(const Deciding& in, const ProposeEnd& input);
Decision decide_one(const Deciding& in, const ProposeComplete& input);
Decision decide_one(const Deciding& in, const ProposeCaughtUp& input);
Decision decide_one(const Deciding& in, const ProposeNote& input);
Decision decide_one(const Deciding& in, const ProposeSwept& input);
Decision decide_one(const Deciding& in, const ProposeArchive& input);
Decision decide_one(const Deciding& in, const ProposeDropTombstone& input);
// decide_access.cc
Decision decide_one(const Deciding& in, const CreateToken& input);
Decision decide_one(const Deciding& in, const RevokeToken& input);
Decision decide_one(const Deciding& in, const JoinNode& input);
Decision decide_one(const Deciding& in, const RenewNode& input);
Decision decide_one(const Deciding& in, const LoginWithToken& input);
Decision decide_one(const Deciding& in, const LoginByUid& input);
Decision decide_one(const Deciding& in, const IssueCertificate& input);
Decision decide_one(const Deciding& in, const RevokeCertificate& input);
Decision decide_one(const Deciding& in, const ChangeAuthority& input);
// decide_secret.cc
Decision decide_one(const Deciding& in, const SetSecret& input);
Decision decide_one(const Deciding& in, const RemoveSecret& input);
Decision decide_one(const Deciding& in, const SetStore& input);
Decision decide_one(const Deciding& in, const RemoveStore& input);

// What every proposal needs: the job and its current attempt, if that has the given number. Empty
// otherwise.
struct Current {
  const JobRecord* job = nullptr;
  const AttemptRecord* attempt = nullptr;
  explicit operator bool() const { return attempt != nullptr; }
};
Current current_of(const Ledger& ledger, const JobId& job, AttemptNo attempt);

}  // namespace muster::core
