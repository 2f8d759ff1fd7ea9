// Checks and completes specs that came over the API, where nothing was checked before. Pure.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// Of a submission; each is for one of its jobs.
using Fetches = google::protobuf::RepeatedPtrField<v1::JobFetches>;

struct JobToSubmit {
  v1::JobSpec spec;  // complete
  // What is known without a look at other jobs: `fetches`; of a stage `stage.dirs`, with the names
  // of all stages before it, named directly or through others.
  v1::ResolvedSpec resolved;
};

// Checks the spec and fills in every default. `stage` is removed: a job on its own is none.
// InvalidArgument lists every problem, one a line.
Result<JobToSubmit> complete_spec(const v1::JobSpec& given, const Fetches& fetches);

struct Chain {
  std::string name;
  std::vector<JobToSubmit> stages;          // each names only stages before it
  std::map<std::string, std::string> done;  // stage -> id of the job that replaces it
};
inline constexpr int kStagesMax = 32;
// The same for the stages of one submission. They must make a chain: one name, each stage once.
// Problems are named "stages.NAME.KEY".
Result<Chain> complete_chain(const google::protobuf::RepeatedPtrField<v1::JobSpec>& given,
                             const google::protobuf::RepeatedPtrField<v1::DoneStage>& done,
                             const Fetches& fetches);

}  // namespace muster::controller
