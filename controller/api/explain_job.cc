#include "controller/api/explain_job.h"

#include <string>
#include <utility>

#include "controller/api/archive_read.h"
#include "controller/api/bounded.h"
#include "controller/api/convert.h"
#include "controller/api/job_ref.h"

namespace muster::controller {

void explain_job(Edge& edge, const JobAccess& access, const v1::ExplainJobRequest* request,
                 v1::ExplainJobResponse* response, grpc::ServerUnaryReactor* reactor) {
  const bool taken = edge.shell.read([&edge, access, reactor, request, response](const View& view) {
    const auto ref = resolve_job(view.ledger, request->job(), RefFor::Reading);
    if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
    const auto fill = [response](const View& shown, const core::JobRecord& job) {
      response->set_job_id(job.id.str());
      response->set_phase(to_v1(job.phase));
      if (!shown.paused.empty()) response->add_lines(bounded(shown.paused, 2 * kShownBytesMost));
      for (const std::string& line :
           core::explain(shown.ledger, shown.presence, job, shown.now, shown.limits))
        response->add_lines(bounded(line, 2 * kShownBytesMost));
    };
    if (!ref->archived) {
      const core::JobRecord& job = view.ledger.jobs.at(ref->id);
      if (const auto allowed = access.check(job.id.str(), job.owner); !allowed)
        return reactor->Finish(rpc::to_status(allowed.error()));
      fill(view, job);
      return reactor->Finish(grpc::Status::OK);
    }
    read_archived(
        edge.shell, ref->id, false, [&edge, access, reactor, fill](Result<ArchivedRecord> record) {
          if (!record) return reactor->Finish(rpc::to_status(record.error()));
          if (const auto allowed = access.check(record->job.id.str(), record->job.owner); !allowed)
            return reactor->Finish(rpc::to_status(allowed.error()));
          const bool again =
              edge.shell.read([reactor, fill, job = std::move(record->job)](const View& shown) {
                fill(shown, job);
                reactor->Finish(grpc::Status::OK);
              });
          if (!again) reactor->Finish(overloaded());
        });
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
