// Makes a directory for another user where that user may not make one himself: the site keeps
// outputs below a directory of root. Stateless function. It blocks, and may run on any thread.
//
// The agent runs as root here, so it walks the path by descriptors. It follows links of root and of
// its own user, because sites keep outputs behind links. It follows no link of anybody else: a job
// may have put it there, and the directory would be made wherever that link leads.
#pragma once

#include <filesystem>

#include "agent/launch/launch_record.h"
#include "common/base/error.h"

namespace muster::agent {

// Makes missing directories with mode 0755, and gives them to the owner. Existing ones stay as they
// are. InvalidArgument: a file has the place of one. NotAllowed: somebody's link is on the way.
Result<void> make_dirs_of_site(const std::filesystem::path& path, const UserEntry& owner);

}  // namespace muster::agent
