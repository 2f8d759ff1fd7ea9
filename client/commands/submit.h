// Submitting a job, or the stages of a chain that are not done, and following what runs to its end
// (or not).
#pragma once

#include <string>
#include <vector>

#include "client/commands/context.h"
#include "client/commands/interrupt.h"
#include "common/spec/parse.h"

namespace muster::client {

struct SubmitOptions {
  bool detach = false;
  bool quiet = false;
  bool again = false;  // stages that are done as well
  std::string request_id;
  std::string timeout;
};

// What a file asks for: `wanted` has no problems.
Result<int> submit(const Context& context, spec::Parsed wanted, const SubmitOptions& options);

// One job, without following it. Under a request id of its own: an answer that was lost is asked
// for again, and makes no second job.
Result<v1::SubmitJobResponse> submit_once(const Session& session, v1::JobSpec spec,
                                          Interrupt& interrupt);

// On stderr, a line each: spec_notes.h.
void tell_notes(const Context& context, const spec::Parsed& wanted);

}  // namespace muster::client
