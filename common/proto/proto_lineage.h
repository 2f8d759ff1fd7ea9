// Converts between Lineage and its message. Pure.
#pragma once

#include "common/base/lineage.h"
#include "muster/v1/agent_service.pb.h"

namespace muster {

inline v1::Lineage to_proto(const Lineage& lineage) {
  v1::Lineage to;
  to.set_generation(lineage.generation);
  to.set_id(lineage.id);
  return to;
}

inline Lineage to_lineage(const v1::Lineage& from) {
  return {.generation = from.generation(), .id = from.id()};
}

}  // namespace muster
