// Following one job to its end on a terminal or a pipe: what `run` and `watch` share. Two threads
// read (job_streams.h), the caller's alone prints. A lost controller is waited for.
//
// Standard output gets events, and of the ranks' lines ("[rank 3] ...") the reporting rank's
// (reporting_rank.h) and every rank's error lines; how many others there were stands at the end.
// Whether
// a live block stands below them, on it or on stderr, is the Screen's to say (screen.h). Lines
// without one below get a progress line now and then, and the checkpoints that it would show.
//
// Of an attempt that fails in its setup both show what that said, on the first nodes where it
// failed: there are no ranks to tell of it.
#pragma once

#include <string>

#include "client/commands/context.h"
#include "client/commands/interrupt.h"

namespace muster::client {

struct FollowOptions {
  std::string job;     // id
  bool logs = true;    // the reporting rank's log and every rank's error lines
  bool quiet = false;  // nothing but the end
  std::string chain;   // name of the chain that the job is followed for: come back to that
  // it may have run for long: first its events until now, then its logs, of those from before only
  // the ends
  bool joins = false;
};

// Until the job is final: its exit code (and a closing summary). Interrupted: 0 and a line that
// says how to come back; timed out: 4.
Result<int> follow(const Context& context, const Session& session, Interrupt& interrupt,
                   const FollowOptions& options);

}  // namespace muster::client
