// Template 2, the group list: a rank table without a version, as the container engine of a cloud
// (ModelArts' jobstart_hccl.json) and old lab set-ups write it. The cloud's form has no rank ids,
// so that who reads it numbers the ranks: HCCL by server_id and device_id, the cloud's launcher by
// pod. The two differ. Pure.
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
  std::optional<std::uint32_t> pod_index;  // the number behind the last '-' of the name
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
  bool lab = false;  // has deploy_mode: ranks have ids
  std::vector<Group> groups;
};

// HCCL's own rules on this form.
GroupList read_group_list(const Json& document, Findings& found);

// Version 1.0 with the ranks as HCCL would number them. Of a list without problems.
RankTable as_hccl_reads(const GroupList& list);

// Version 1.0 in the cloud launcher's order: the first group's instances by the number at the end
// of pod_name, then device by device as they stand; instances of one server are one server, where
// its first one is. The lab form: by its rank ids. Errors: a pod without a number.
Result<RankTable> as_launcher_reads(const GroupList& list);

}  // namespace muster::ranktable
