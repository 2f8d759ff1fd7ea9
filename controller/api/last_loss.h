// The loss of an ended job's last step, from its series: heartbeats are forgotten with the process
// and
// when the job is archived.
#pragma once

#include "controller/logs/log_store.h"
#include "muster/v1/job.pb.h"

namespace muster::controller {

// It has ended, and of its last step no loss is told.
bool lacks_loss(const v1::Job& job);
// Where it lacks and the series has that step's. Reads a file.
void add_last_loss(v1::Job& job, logs::LogStore& logs);

}  // namespace muster::controller
