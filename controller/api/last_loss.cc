#include "controller/api/last_loss.h"

#include <cmath>

namespace muster::controller {

bool lacks_loss(const v1::Job& job) {
  return job.has_ended_at() && job.progress().has_step() && !job.progress().has_loss() &&
         !job.progress().loss_not_finite();
}

void add_last_loss(v1::Job& job, logs::LogStore& logs) {
  if (!lacks_loss(job)) return;
  v1::Progress& progress = *job.mutable_progress();
  const auto point = logs.last_point(JobId(job.id()));
  if (!point || !*point || (*point)->attempt.value != progress.attempt() ||
      (*point)->step != progress.step())
    return;
  if ((*point)->has_loss) progress.set_loss((*point)->loss);
  progress.set_loss_not_finite(!(*point)->has_loss && std::isnan((*point)->loss));
}

}  // namespace muster::controller
