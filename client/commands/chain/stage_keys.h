// Computes StageSpec.key: one word for everything that a stage of a chain is made from. Stateless
// functions that read the metadata of files, but not their content. One thread.
//
// The key covers the stage's spec without the parts that do not change its result (description,
// labels, schedule, recovery). It covers the names, sizes and times of files that the spec names
// and that are on this machine. It covers the keys of the stages that it names.
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

// limit of a stage; a stage with more files has no key and is never done
inline constexpr std::size_t kFingerprintFilesMost = 200'000;

// Returns the stages of the same submission that this stage names.
std::vector<std::string> stages_named(const v1::JobSpec& stage);

// Returns the id of the job that a text names ("job:J"), or an empty text if it is not known.
using JobIdOf = std::function<std::string(const std::string& job)>;

// Sets the key of every stage that creates something. Each stage in `stages` comes after those that
// it names. Returns a sentence for each stage whose files could not be compared.
std::vector<std::string> set_stage_keys(std::vector<v1::JobSpec>& stages, const JobIdOf& id_of,
                                        std::size_t files_most = kFingerprintFilesMost);

// Returns plain paths that the spec uses and that are not on this machine, as "inputs.data: '/x'".
std::vector<std::string> missing_paths(const v1::JobSpec& spec);

}  // namespace muster::client
