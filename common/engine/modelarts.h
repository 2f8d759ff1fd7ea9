// compat: modelarts: the environment that the platform's training containers have, for scripts that
// were written for it, as far as it means something on a node that is none of its own. Pure.
//
//   VC_WORKER_NUM, MA_NUM_HOSTS       nodes of the job
//   VC_TASK_INDEX                     this one's number
//   VC_WORKER_HOSTS                   their addresses, the first rank's first: the platform's names
//                                     would not resolve here
//   MA_NUM_GPUS                       devices of this node that are the job's
//   MA_CURRENT_IP, MA_CURRENT_HOST_IP this node's address
//   MA_VJ_NAME, MA_TASK_NAME          ma-job-<job>, worker
//   MA_CURRENT_INSTANCE_NAME          ma-job-<job>-worker-<node>
//   MA_HOME, MA_MOUNT_PATH            a directory of the node's and attempt's own below ${out},
//                                     where its own launcher would write; "modelarts" below it
//   MA_JOB_DIR, MA_LOG_DIR            what the code directory lies in; "log" below MA_MOUNT_PATH.
//                                     Not with an engine that would take itself for inside the
//                                     platform by them (Engine::cloud)
//   RANK_TABLE_FILE                   a directory with jobstart_hccl.json in it, a group list:
//                                     engine command on Ascend devices, where muster starts no
//                                     engine that reads another form, unless the job sets the
//                                     variable itself
//
// MA_INPUTS and MA_OUTPUTS describe data channels, of which there are none.
// Sources: Huawei Cloud ModelArts documentation (develop-modelarts-0104, docker-modelarts-0092);
// Wh1isper/davincirunsdk davincirunsdk/{common,rank_table}.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/engine/rows.h"

namespace muster::engine {

bool is_modelarts(const v1::JobSpec& spec);
// A name that a job may not set with compat: modelarts: MA_*, and VC_* as above.
bool is_modelarts_variable(std::string_view name);

// Whether the job's nodes may be given the directory form: they need kLaunchFiles then.
bool gives_group_list(const v1::JobSpec& spec);

// Into every rank's environment, and the group list into the plan's files. Before the engine's own:
// what it sets stands over this, and its auxiliary processes get it.
void put_modelarts(Launching& launching, const Engine& engine);

// Of a node of the plan, to be made before anything starts.
std::vector<std::string> modelarts_dirs(const LaunchRequest& request, std::size_t node);

}  // namespace muster::engine
