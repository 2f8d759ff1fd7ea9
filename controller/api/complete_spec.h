// Specs that came over the API: nothing at all was checked before. Pure.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Checked and with every default filled in. What only the controller sets (start.dir, start.point,
// inputs.path, stage) is taken out first, whoever wrote it. InvalidArgument lists every problem,
// one a line.
Result<v1::JobSpec> complete_spec(const v1::JobSpec& given);

struct Chain {
  std::string name;
  // Each names only stages before it. Their stage.dirs have the names of all that come before them,
  // directly or through others; no ids yet.
  std::vector<v1::JobSpec> stages;
  std::map<std::string, std::string> done;  // stage -> id of the job that stands for it
};
inline constexpr int kStagesMax = 32;
// The same for the stages of one submission, which have to make a chain: one name, each stage once.
// Problems are named "stages.NAME.KEY".
Result<Chain> complete_chain(const google::protobuf::RepeatedPtrField<v1::JobSpec>& given,
                             const google::protobuf::RepeatedPtrField<v1::DoneStage>& done);

}  // namespace muster::controller
