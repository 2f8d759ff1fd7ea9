// muster version: prints the client's version, and the controller's if one answers.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "common/base/version.h"

namespace muster::client {

void add_version(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "version", "Print the client's version, and the controller's when it answers");
  on_chosen(*command, context, exit, [](const Context& chosen) -> Result<int> {
    fmt::print("client      {}\n", kVersion);
    const auto session = chosen.connect();
    if (!session) return kOk;
    const auto status = ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest(),
                            nullptr, std::chrono::seconds(2));
    if (!status) return kOk;
    const std::string generation =
        status->generation() == 0 ? "" : fmt::format("generation {}, ", status->generation());
    fmt::print("controller  {} (protocol {} to {}, cluster {}, {}epoch {})\n",
               render::printable(status->version()), status->protocol_min(), status->protocol_max(),
               render::printable(status->cluster_id()), generation, status->epoch());
    if (!status->paused().empty()) fmt::print("{}\n", render::printable(status->paused()));
    return kOk;
  });
}

}  // namespace muster::client
