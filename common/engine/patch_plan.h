// Plans launch.patch and launch.vars, and on an attempt that resumes also resume.patch, resume.vars
// and resume.drop. The plan states which files of a node are changed on copies, where the copies
// are, and which words of the command lines name them. Pure.
//
// It also states which files must exist on a node: launch.script and launch.config.
//
// The content of the files is not known here: the node's agent makes the copies.
//
// These become the copy's path if they are the file's name as the spec writes it, or its whole
// path:
// - a word of a command line, or the part after the '=' of a word;
// - an absolute path in a variable;
// - a value of launch.vars.
//
// If nothing names a file, its copy would have no reader: this is a problem.
//
// The file from which MindSpeed-MM reads what to profile (observing.h) is handled in the same
// manner.
//
// Templates in values may only be names whose value is the same for all ranks of a node.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/engine/model/rows.h"

namespace muster::engine {

struct PatchPlanning {
  const LaunchRequest& request;
  LaunchPlan& plan;  // command lines and environments are complete
  Problems& problems;
  // value of a template's name, for this rank
  std::function<Result<std::string>(const RankPlan&, std::string_view name)> value;
};
void plan_patches(const PatchPlanning& planning);

// Removes these flags from launch.run and launch.args, in both forms, together with the words up to
// the next flag. A negative number is not a flag.
void drop_words(CommandLine& command, const google::protobuf::RepeatedPtrField<std::string>& flags);

// The files that a plan of this spec changes, as absolute paths, with their changes in order.
// Templates are not expanded: this shows the files before a placement exists.
struct FilePatch {
  std::string source;
  std::vector<std::pair<std::string, std::string>> items;
  std::map<std::string, std::string> vars;
};
std::vector<FilePatch> file_patches(const v1::JobSpec& spec);

bool patches_files(const v1::JobSpec& spec);

}  // namespace muster::engine
