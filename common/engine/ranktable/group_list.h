// Template 2, the group list: the older form of a rank table, without a version. Pure.
//
// The container engine of a cloud (ModelArts' jobstart_hccl.json) and old lab installations write
// it. The cloud's form has no rank ids, so each reader numbers the ranks itself. HCCL numbers them
// by server_id and device_id, the cloud's launcher by pod. The two orders differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

struct Instance {
  std::string pod_name;
  std::optional<std::uint32_t> pod_index;  // the number after the last '-' of the name
  std::optional<std::uint32_t> rank_id;    // lab form
  std::string server_id;
  std::vector<Device> devices;  // their rank ids are not set
};
struct Group {
  std::string name;
  std::uint32_t device_count = 0;
  std::vector<Instance> instances;
};
struct GroupList {
  bool lab = false;  // it has deploy_mode: ranks have ids
  std::vector<Group> groups;
};

// Reads the list and checks HCCL's own rules for this form.
GroupList read_group_list(const Json& document, Findings& found);

// A table of version 1.0 with the ranks as HCCL numbers them. The list must have no problems.
RankTable as_hccl_reads(const GroupList& list);

// A table of version 1.0 in the cloud launcher's order. The instances of the first group are sorted
// by the number at the end of pod_name, and the devices of an instance keep their order. Instances
// of one server become one server, at the position of its first instance. The lab form is sorted by
// its rank ids. Errors: a pod without a number.
Result<RankTable> as_launcher_reads(const GroupList& list);

}  // namespace muster::ranktable
