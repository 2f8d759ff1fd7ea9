// Makes a draft of a spec from the ranks that a script started in the background, so that muster
// starts these ranks itself. Pure, except for `is_file`.
//
// Such ranks have RANK, or a variable of their engine (launch_signs.h in common/engine/model), in
// their environment; run_distribute.sh of MindFormers starts ranks like this.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/import/captured.h"
#include "common/base/error.h"
#include "common/compat/launcher/draft.h"

namespace muster::import {

using IsFile = std::function<bool(const std::string& path)>;

// The draft has the ranks' common command, engine, nodes and devices, but no environment and no
// name. Words that contain a rank's own number become ${rank}, ${device_id} and the like. Errors
// (InvalidArgument): commands that differ in anything else.
Result<launcher::Draft> draft_of_ranks(const std::vector<Captured>& calls, const IsFile& is_file);

}  // namespace muster::import
