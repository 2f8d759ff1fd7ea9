// Submits a job, or the stages of a chain that are not done, and follows what runs to its end if
// wanted. Stateless functions. The caller's thread, which blocks.
#pragma once

#include <string>
#include <vector>

#include "client/commands/call/context.h"
#include "client/commands/call/interrupt.h"
#include "common/spec/parse.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

struct SubmitOptions {
  bool detach = false;
  bool quiet = false;
  bool again = false;  // also submit stages that are done
  std::string request_id;
  std::string timeout;
};

using JobFetches = std::vector<v1::JobFetches>;

// Submits what a file asks for. `wanted` must have no problems. `fetches`: of muster's own chains.
Result<int> submit(const Context& context, spec::Parsed wanted, const SubmitOptions& options,
                   const JobFetches& fetches = {});

// Submits one job without following it. It has a request id of its own: if the answer is lost, the
// retry makes no second job.
Result<v1::SubmitJobResponse> submit_once(const Session& session, v1::JobSpec spec,
                                          const JobFetches& fetches, Interrupt& interrupt);

// Prints the notes of spec_notes.h on stderr, a line each.
void tell_notes(const Context& context, const spec::Parsed& wanted);

}  // namespace muster::client
