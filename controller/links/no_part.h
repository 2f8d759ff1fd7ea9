// What the controller writes down when a node speaks of an attempt that exists, and of which it has
// no part. Nothing of it counts. Pure.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "common/base/error.h"
#include "common/base/ids.h"

namespace muster::controller {

inline Error no_part(std::string_view doing, const NodeName& node, const JobId& job,
                     AttemptNo attempt) {
  return {
      .code = ErrorCode::NotAllowed,
      .message = fmt::format("{} of job '{}' attempt {}: node '{}' has no part of it, so nothing "
                             "of that is taken; look after that node",
                             doing, job.str(), attempt.value, node.str())};
}

}  // namespace muster::controller
