// launch.patch and launch.vars, on an attempt that resumes with resume.patch, resume.vars and
// resume.drop: which files of a node are changed on copies, where the copies are, and which words
// of the command lines then name them. What is in the files nobody knows here: the node's agent
// makes the copies.
//
//   a word, what stands behind the '=' of one, or an absolute path in a variable, that is the
//   file's name as the spec writes it or its whole path, becomes the copy's path; so does a value
//   of launch.vars. A file that nothing of these names would be changed for nobody: a problem.
//
// So does the file from which MindSpeed-MM reads what to profile (observing.h).
//
// Templates in values have what is the same for all ranks of a node. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/engine/rows.h"

namespace muster::engine {

struct PatchPlanning {
  const LaunchRequest& request;
  LaunchPlan& plan;  // command lines and environments are whole
  Problems& problems;
  // of a template's name, for this rank
  std::function<Result<std::string>(const RankPlan&, std::string_view name)> value;
};
void plan_patches(const PatchPlanning& planning);

// Leaves the flags of launch.run and launch.args out, in both forms, with the words behind them up
// to the next flag; a negative number is none.
void drop_words(CommandLine& command, const google::protobuf::RepeatedPtrField<std::string>& flags);

// The files that a plan of this spec changes, absolute, with their changes in order, templates as
// they stand: for showing them before there is a placement.
struct FilePatch {
  std::string source;
  std::vector<std::pair<std::string, std::string>> items;
  std::map<std::string, std::string> vars;
};
std::vector<FilePatch> file_patches(const v1::JobSpec& spec);

bool patches_files(const v1::JobSpec& spec);

}  // namespace muster::engine
