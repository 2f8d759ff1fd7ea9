// The environment of ModelArts' training containers, for scripts that were written for that
// platform (compat: modelarts). Only variables that make sense on a node outside the platform are
// set. Pure.
//
//   VC_WORKER_NUM, MA_NUM_HOSTS       nodes of the job
//   VC_TASK_INDEX                     number of this node
//   VC_WORKER_HOSTS                   addresses of the nodes, the first rank's node first: the
//                                     platform's names would not resolve here
//   MA_NUM_GPUS                       devices of this node that the job has
//   MA_CURRENT_IP, MA_CURRENT_HOST_IP address of this node
//   MA_VJ_NAME, MA_TASK_NAME          ma-job-<job>, worker
//   MA_CURRENT_INSTANCE_NAME          ma-job-<job>-worker-<node>
//   MA_HOME, MA_MOUNT_PATH            a directory of this node and attempt below ${out}, where the
//                                     platform's launcher would write; "modelarts" below it
//   MA_JOB_DIR, MA_LOG_DIR            the parent of the code directory; "log" below MA_MOUNT_PATH.
//                                     Not set for an engine that would take them as a sign that it
//                                     runs inside the platform (Engine::cloud)
//   RANK_TABLE_FILE                   a directory with jobstart_hccl.json, a group list. Set for
//                                     engine command on Ascend devices, because muster starts no
//                                     engine there that reads another form; not set if the job sets
//                                     the variable itself
//
// MA_INPUTS and MA_OUTPUTS describe data channels, which muster does not have.
//
// Sources: Huawei Cloud ModelArts documentation (develop-modelarts-0104, docker-modelarts-0092);
// Wh1isper/davincirunsdk davincirunsdk/{common,rank_table}.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/engine/model/rows.h"

namespace muster::engine {

bool is_modelarts(const v1::JobSpec& spec);
// Whether a job with compat: modelarts must not set this name: MA_*, and VC_* as above.
bool is_modelarts_variable(std::string_view name);

// Whether the job's nodes may get a group list.
bool gives_group_list(const v1::JobSpec& spec);

// Sets the variables in every rank's environment, and adds the group list to the plan's files. It
// runs before the engine's own function. So the engine's values override these, and the engine's
// auxiliary processes get these, too.
void put_modelarts(Launching& launching, const Engine& engine);

// Directories of a node of the plan that must exist before anything starts.
std::vector<std::string> modelarts_dirs(const LaunchRequest& request, std::size_t node);

}  // namespace muster::engine
