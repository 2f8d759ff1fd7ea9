#include "controller/api/read_series.h"

#include <string>
#include <vector>

#include "common/proto/proto_time.h"
#include "controller/api/archive_read.h"
#include "controller/api/job_ref.h"
#include "controller/api/withhold.h"

namespace muster::controller {
namespace {

void fill_series(v1::ReadSeriesResponse& response, const std::vector<logs::SeriesPoint>& points) {
  for (const logs::SeriesPoint& point : points) {
    v1::SeriesPoint& one = *response.add_points();
    *one.mutable_at() = to_proto(point.at);
    one.set_attempt(point.attempt.value);
    one.set_step(point.step);
    if (point.has_loss) one.set_loss(point.loss);
  }
}

}  // namespace

void read_series(Edge& edge, const JobAccess& access, const v1::ReadSeriesRequest* request,
                 v1::ReadSeriesResponse* response, grpc::ServerUnaryReactor* reactor) {
  const bool taken = edge.shell.read([&edge, access, reactor, request, response](const View& view) {
    const auto ref = resolve_job(view.ledger, request->job(), RefFor::Reading);
    if (!ref) return reactor->Finish(rpc::to_status(ref.error()));
    const auto read = [&edge, reactor, response, id = ref->id] {
      edge.work.post("series-read", [&edge, reactor, response, id] {
        const auto points = edge.logs.series(id);
        if (!points) return reactor->Finish(rpc::to_status(points.error()));
        fill_series(*response, *points);
        reactor->Finish(grpc::Status::OK);
      });
    };
    if (const std::string* owner = owner_of(view.ledger, ref->id)) {
      if (const auto allowed = access.check(ref->id.str(), *owner); !allowed)
        return reactor->Finish(rpc::to_status(allowed.error()));
      return read();
    }
    read_archived(
        edge.shell, ref->id, false, [access, reactor, read](Result<ArchivedRecord> record) {
          if (!record) return reactor->Finish(rpc::to_status(record.error()));
          if (const auto allowed = access.check(record->job.id.str(), record->job.owner); !allowed)
            return reactor->Finish(rpc::to_status(allowed.error()));
          read();
        });
  });
  if (!taken) reactor->Finish(overloaded());
}

}  // namespace muster::controller
