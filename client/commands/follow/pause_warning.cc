#include "client/commands/follow/pause_warning.h"

#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/render/text.h"

namespace muster::client {

void warn_of_pause(const Context& context) {
  const auto session = context.connect();
  if (!session) return;
  const auto status = ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest(),
                          nullptr, std::chrono::seconds(2));
  if (status && !status->paused().empty())
    fmt::print(stderr, "{}\n", render::printable(status->paused()));
}

}  // namespace muster::client
