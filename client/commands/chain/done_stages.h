// Finds the stages of a chain that need not run again. One stateless function; one thread, which
// blocks for calls.
//
// A stage is done if these conditions hold:
// - An earlier job of the same name has the same key (stage_keys.h).
// - What that job created is still on this machine.
// - Every stage that the stage names is done, too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/commands/call/call.h"

namespace muster::client {

struct DoneStages {
  std::map<std::string, v1::FoundStage> found;  // by stage
  // what a running stage creates, if the path exists already: from an earlier run, or of unknown
  // origin
  std::map<std::string, std::string> leftover;
  // a sentence for each done stage, each file that is gone or already there, and each failed check
  std::vector<std::string> notes;
};

// Each stage in `stages` comes after those that it names. The function sets their keys
// (stage_keys.h).
Result<DoneStages> find_done_stages(const Session& session, std::vector<v1::JobSpec>& stages,
                                    Interrupt* interrupt);

}  // namespace muster::client
