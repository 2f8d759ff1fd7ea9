#include "agent/link/secret_fetch.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "common/rpc/status.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {

// A controller that is started again answers a moment later, so the call waits for it.
Result<v1::FetchSecretsResponse> SecretFetch::ask(const v1::FetchSecretsRequest& request,
                                                  const std::string& doing) {
  const auto until = std::chrono::system_clock::now() +
                     std::chrono::duration_cast<std::chrono::system_clock::duration>(kSecretsTime);
  for (;;) {
    grpc::ClientContext context;
    const OpenCalls::Call call(calls_, context);
    if (call.stopped()) return fail(ErrorCode::Unreachable, doing + ": the agent is about to end");
    auto endpoint = options_.endpoint();
    if (!endpoint) return fail(std::move(endpoint.error()).in(doing));
    context.set_deadline(until);
    context.set_wait_for_ready(true);
    v1::FetchSecretsResponse response;
    const auto stub = v1::AgentService::NewStub(rpc::make_channel(*endpoint));
    const grpc::Status status = stub->FetchSecrets(&context, request, &response);
    if (status.ok()) return response;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
        std::chrono::system_clock::now() < until && !call.stopped())
      continue;
    Error why = rpc::to_error(status);
    // What is not known to be the fault of the job is none: another start may succeed.
    if (why.code != ErrorCode::InvalidArgument) why.code = ErrorCode::Unreachable;
    return fail(std::move(why).in(doing));
  }
}

Result<SecretsByName> SecretFetch::fetch(const v1::NodeLaunch& order) {
  const std::string doing =
      fmt::format("asking the controller for the secrets of job '{}'",
                  order.job_name().empty() ? order.job_id() : order.job_name());
  const auto self = options_.self();
  if (!self) return fail(ErrorCode::Unreachable, doing + ": the agent has not joined a cluster");
  v1::FetchSecretsRequest request;
  request.set_cluster_id(self->cluster_id());
  request.set_node(self->node());
  request.set_instance(self->instance());
  request.set_job_id(order.job_id());
  request.set_attempt(order.attempt());
  auto response = ask(request, doing);
  if (!response) return fail(std::move(response.error()));
  SecretsByName given;
  for (v1::SecretValue& one : *response->mutable_secrets())
    given[one.secret()] = std::move(*one.mutable_value());
  return given;
}

}  // namespace muster::agent
