// Checks and completes specs that came over the API, where nothing was checked before. Pure.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Checks the spec and fills in every default. First it removes fields that only the controller sets
// (start.dir, start.point, inputs.path, stage), whoever wrote them. InvalidArgument lists every
// problem, one a line.
Result<v1::JobSpec> complete_spec(const v1::JobSpec& given);

struct Chain {
  std::string name;
  // Each stage names only stages before it. Its stage.dirs have the names of all stages before it,
  // named directly or through others; they have no ids yet.
  std::vector<v1::JobSpec> stages;
  std::map<std::string, std::string> done;  // stage -> id of the job that replaces it
};
inline constexpr int kStagesMax = 32;
// The same for the stages of one submission. They must make a chain: one name, each stage once.
// Problems are named "stages.NAME.KEY".
Result<Chain> complete_chain(const google::protobuf::RepeatedPtrField<v1::JobSpec>& given,
                             const google::protobuf::RepeatedPtrField<v1::DoneStage>& done);

}  // namespace muster::controller
