// Lists of the SHA-256 of files that a job has uploaded. Pure.
//
// The format is that of sha256sum (GNU coreutils): a line SHA256, two spaces, NAME. A line that
// begins with "\" has a name where a line end is written \n, a carriage return \r, and "\" is
// written "\\". So `sha256sum --check LIST` works in the directory that the names are below.
//
// Below a save directory:
//   .muster/step-240/NODE.sha256    what NODE has uploaded of the checkpoint of step 240
//   .muster/step-240.sha256         these lists of all nodes; it is there when all of them are
// Below the URL of outputs.to:
//   .muster/JOB/NODE.sha256         all that NODE has uploaded, in the end
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::store {

// The directory of these lists.
inline constexpr std::string_view kSumsDir = ".muster";

// SHA-256, as 64 lower-case hexadecimal digits, by the name of the file.
using Sums = std::map<std::string, std::string>;

std::string sums_text(const Sums& sums);
// DataLoss: it is no such list, or it has a name twice.
Result<Sums> parse_sums(std::string_view text);

std::string step_sums_name(std::int64_t step);
std::string node_sums_name(std::int64_t step, std::string_view node);
std::string job_sums_name(std::string_view job, std::string_view node);

}  // namespace muster::store
