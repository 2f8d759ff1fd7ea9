#include "controller/core/model/requirements.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "common/digest/sha256.h"
#include "common/engine/ascend/hccl_cards.h"
#include "common/engine/ascend/table_plan.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/secret.h"
#include "controller/core/model/spec_view.h"

namespace muster::core {

std::string requirements_of(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved) {
  std::string requirements;
  // Where it saves decides which nodes share that storage (placement/one_storage.h). Where a job
  // without directories of its own saves is the same for all of them.
  if (spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_SHARED &&
      spec.resources().nodes() > 1) {
    requirements += "shared ";
    for (const std::string* text : {&spec.checkpoint().layout(), &spec.checkpoint().dir(),
                                    &spec.output_dir(), &resolved.outputs_root()})
      requirements += std::to_string(text->size()) + " " + *text;
    if (!resumes(spec)) requirements += " never";
  }
  if (engine::makes_rank_table(spec)) requirements += "table ";
  if (!engine::secrets_of(spec).empty()) requirements += "secrets ";
  if (has_staged_input(spec)) requirements += "stores ";
  if (uploads_outputs(spec)) requirements += "uploads ";
  if (uploads_logs(spec)) requirements += "logs ";
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
