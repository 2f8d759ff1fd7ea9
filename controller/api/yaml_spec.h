// Reads a spec that came over the API as the text that a person writes. Pure.
#pragma once

#include "common/spec/parse.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

// The specs have no problems. InvalidArgument lists every problem with its position in the text,
// one a line; a file that the text names must be among YamlSpec.files.
Result<spec::Parsed> parse_yaml_spec(const v1::YamlSpec& given);

// The same request with the parsed specs in place of `yaml`. InvalidArgument: there are specs, too.
Result<v1::SubmitJobRequest> with_specs(const v1::SubmitJobRequest& request);
Result<v1::PlanJobRequest> with_specs(const v1::PlanJobRequest& request);

}  // namespace muster::controller
