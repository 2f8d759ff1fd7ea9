// muster version: ours, and the controller's when one answers.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "common/base/version.h"

namespace muster::client {

void add_version(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("version", "Print the client's version, and the controller's when it answers");
  command->callback([&context, &exit] {
    fmt::print("client      {}\n", kVersion);
    exit = kOk;
    auto session = context.connect();
    if (!session) return;
    grpc::ClientContext call;
    session->prepare(call, std::chrono::seconds(2));
    v1::GetClusterStatusResponse response;
    if (session->nodes->GetClusterStatus(&call, {}, &response).ok()) {
      fmt::print("controller  {} (protocol {} to {}, cluster {}, epoch {})\n", response.version(), response.protocol_min(), response.protocol_max(), response.cluster_id(), response.epoch());
    }
  });
}

}  // namespace muster::client
