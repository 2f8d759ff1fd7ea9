#include "controller/core/model/requirements.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "common/digest/sha256.h"
#include "common/engine/ascend/hccl_cards.h"
#include "common/engine/ascend/table_plan.h"
#include "common/engine/model/engine.h"

namespace muster::core {

std::string requirements_of(const v1::JobSpec& spec) {
  std::string requirements;
  if (engine::makes_rank_table(spec)) requirements += "table ";
  if (const auto joined = engine::binding_chip(spec, ranktable::Chip::A910B))
    requirements += "halves ";
  if (engine::is_hccl_group(spec)) requirements += "hccl ";
  // A fixed port of rank 0 may be inside a block. An idle node of `launch.per: once` needs no
  // block.
  if (engine::wants_hccl_port(spec)) {
    requirements += "ports ";
    if (spec.network().master_port() != 0)
      requirements += std::to_string(spec.network().master_port()) + " ";
    if (spec.launch().per() == v1::LAUNCH_PER_ONCE) requirements += "once ";
  }
  requirements += spec.network().interface();
  requirements.push_back('\0');
  v1::ResourceSpec resources = spec.resources();
  // The user's own table may be long, and every line of the queue has its requirements as its key.
  if (resources.has_rank_table())
    resources.mutable_rank_table()->set_content(
        sha256_hex(spec.resources().rank_table().content()));
  google::protobuf::io::StringOutputStream stream(&requirements);
  google::protobuf::io::CodedOutputStream coded(&stream);
  // The labels of `select` are a map, whose order would otherwise be undefined.
  coded.SetSerializationDeterministic(true);
  resources.SerializeToCodedStream(&coded);
  coded.Trim();
  return requirements;
}

}  // namespace muster::core
