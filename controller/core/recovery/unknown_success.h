// Says when the agents' answers leave open whether an attempt had success: every rank ended with
// status 0, and a file system hung, so an agent could not find out whether what the job's `success`
// asks for is there (RankExited.success_unknown). That is no error of the program, but the node's.
// Pure.
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// The first rank whose answer is lacking. Null: the answers that are there decide. One rank with
// success is enough for a regex, a file and the last step. For success.rank_file one rank is enough
// that is known to lack its file.
const RankExited* unknown_success(const JobRecord& job, const AttemptRecord& attempt);

// The cause that breaks the attempt. `exit` is unknown_success().
std::string unknown_success_text(const JobRecord& job, const RankExited& exit);

}  // namespace muster::core
