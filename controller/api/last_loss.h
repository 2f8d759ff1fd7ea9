// Reads the loss of an ended job's last step from its series. The functions own nothing. They run
// on the work loop or on the archive's thread.
//
// The loss is not known otherwise: heartbeats are lost with the process, and when the job is
// archived.
#pragma once

#include "controller/logs/log_store.h"
#include "muster/v1/job.pb.h"

namespace muster::controller {

// The job has ended, and the loss of its last step is not known.
bool lacks_loss(const v1::Job& job);
// Adds the loss if it is missing and the series has that step. Reads a file.
void add_last_loss(v1::Job& job, logs::LogStore& logs);

}  // namespace muster::controller
