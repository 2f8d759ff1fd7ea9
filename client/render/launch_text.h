// One rank's launch as text: what `muster env` and `muster plan` print. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::render {

// Quoted so that a POSIX shell reads the same words back.
std::string shell_quote(const std::string& word);
std::string command_text(const v1::RankLaunch& launch);
std::string launch_text(const v1::RankLaunch& launch, const Style& style);

}  // namespace muster::render
