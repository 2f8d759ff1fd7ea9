// What a stage of a chain is made from, as one word: StageSpec.key. It goes over the stage's spec
// without what changes nothing of its result (description, labels, schedule, recovery), the names,
// sizes and times of the files that the spec names and that are on this machine, and the keys of
// the stages that it names. I/O: looks at files, reads none.
//
//   inputs and start.from with plain paths (of a directory: all files below it) · launch.script ·
//   launch.config · files of launch.patch and resume.patch · words of launch.run that end in .py,
//   .sh or .bash and are files
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::client {

// of a stage; with more it has no key, and is never taken for done
inline constexpr std::size_t kFingerprintFilesMost = 200'000;

// The stages of the same submission that this one names.
std::vector<std::string> stages_named(const v1::JobSpec& stage);

// The id of the job that a text names ("job:J"); empty: not known.
using JobIdOf = std::function<std::string(const std::string& job)>;

// Sets the key of every stage that creates something; `stages`: each behind those that it names.
// What could not be told, in a sentence each.
std::vector<std::string> set_stage_keys(std::vector<v1::JobSpec>& stages, const JobIdOf& id_of,
                                        std::size_t files_most = kFingerprintFilesMost);

// Plain paths that the spec takes from and that are not on this machine, as "inputs.data: '/x'".
std::vector<std::string> missing_paths(const v1::JobSpec& spec);

}  // namespace muster::client
