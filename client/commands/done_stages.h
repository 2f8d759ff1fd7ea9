// Which stages of a chain need not run again: each that an earlier job of its name stands for, made
// from the same, with what it created still on this machine; and every stage that it names is done,
// too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/commands/call.h"

namespace muster::client {

struct DoneStages {
  std::map<std::string, v1::FoundStage> found;  // by stage
  // what a stage that runs creates, where that is there already: an earlier run's, or nobody's
  std::map<std::string, std::string> leftover;
  // a sentence for each, for those whose file is gone or there already, and for what could not be
  // looked at
  std::vector<std::string> notes;
};

// `stages`: each behind those that it names; gives them their keys (stage_keys.h).
Result<DoneStages> find_done_stages(const Session& session, std::vector<v1::JobSpec>& stages,
                                    Interrupt* interrupt);

}  // namespace muster::client
