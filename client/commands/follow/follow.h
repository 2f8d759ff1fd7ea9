// Follows one job to its end on a terminal or a pipe, for `run` and `watch`. A Follower in
// follow.cc exists for one call. Two threads read (job_streams.h); only the caller's thread prints.
//
// If the controller is lost, the function waits for it.
//
// Standard output gets the events, the reporting rank's lines ("[rank 3] ...", reporting_rank.h),
// and every rank's error lines. At the end it prints how many other lines there were.
//
// The Screen (screen.h) decides whether a live block is below the lines, on standard output or on
// stderr. Without a block below, a progress line comes at most every two seconds. Then the lines
// also include the checkpoints that the block would show.
//
// If an attempt fails in its setup, both verbs print the setup's lines from the first nodes where
// it failed. No rank exists that could report the failure.
#pragma once

#include <string>

#include "client/commands/call/context.h"
#include "client/commands/call/interrupt.h"

namespace muster::client {

struct FollowOptions {
  std::string job;     // id
  bool logs = true;    // the reporting rank's log and every rank's error lines
  bool quiet = false;  // print only the end
  std::string chain;   // chain of the job, if any: messages name this chain
  // The job may have run for long: print its events until now first, then its logs. For logs from
  // before, only their ends.
  bool joins = false;
};

// Returns when the job is final, with its exit code, after a closing summary. Returns 0 after
// Ctrl-C, with a line that names the command to come back. Returns 4 after the time-out.
Result<int> follow(const Context& context, const Session& session, Interrupt& interrupt,
                   const FollowOptions& options);

}  // namespace muster::client
