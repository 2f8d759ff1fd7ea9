// Ranks that a script has put into the background (RANK_ID, RANK or MS_ROLE in their environment),
// as run_distribute.sh of MindFormers does -> a spec whose ranks muster starts itself. Pure but for
// the question whether a file is there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/import/captured.h"
#include "common/base/error.h"
#include "common/launcher/draft.h"

namespace muster::import {

using IsFile = std::function<bool(const std::string& path)>;

// The ranks' common command, engine, nodes and devices; no environment and no name. Words that are
// a rank's own number become ${rank}, ${device_id} and the like. Errors (InvalidArgument): commands
// that differ in anything else.
Result<launcher::Draft> draft_of_ranks(const std::vector<Captured>& calls, const IsFile& is_file);

}  // namespace muster::import
