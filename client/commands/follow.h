// Following one job to its end on a terminal or a pipe: what `run` and `watch` share. Two threads read (job_streams.h), the caller's alone prints. A lost
// controller is waited for.
//
//   terminal: events and error lines scroll on stderr, a live block is redrawn below them
//   pipe:     events, rank lines ("[rank 3] ...") and a progress line now and then on stdout; nothing is redrawn. Of the ranks' lines it gets the
//             spokesman's (spokesman.h) and every rank's error lines; how many others there were stands at the end
//
// Of an attempt that fails in its setup both show what that said, on the first nodes where it failed: there are no ranks to tell of it.
#pragma once

#include <string>

#include "client/commands/context.h"
#include "client/commands/interrupt.h"

namespace muster::client {

struct FollowOptions {
  std::string job;     // id
  bool logs = true;    // the spokesman's log and every rank's error lines
  bool quiet = false;  // nothing but the end
  std::string chain;   // name of the chain that the job is followed for: come back to that
};

// Until the job is final: its exit code (and a closing summary). Interrupted: 0 and a line that says how to come back; timed out: 4.
Result<int> follow(const Context& context, const Session& session, Interrupt& interrupt, const FollowOptions& options);

}  // namespace muster::client
