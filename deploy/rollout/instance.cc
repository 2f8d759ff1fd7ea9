#include "deploy/rollout/instance.h"

#include <fmt/format.h>

#include "common/io/frames.h"
#include "common/rundir/layout.h"
#include "common/text/shell_word.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::rollout {

Result<std::string> read_instance(Host& host, const Places& places) {
  const std::string file = shell_word(rundir::AgentLayout(places.state_dir).identity().string());
  const std::string doing = fmt::format("reading the agent's identity on '{}'", host.name());
  auto bytes = host.need(doing, fmt::format("[ ! -f {0} ] || head -c 65536 {0}", file));
  if (!bytes) return fail(std::move(bytes.error()));
  if (bytes->empty()) return std::string();
  const io::Decoded decoded = io::decode_frames(*bytes);
  ::muster::rundir::v1::Identity record;
  if (decoded.payloads.size() != 1 ||
      !record.ParseFromArray(decoded.payloads.front().data(),
                             static_cast<int>(decoded.payloads.front().size())))
    return fail(ErrorCode::DataLoss, fmt::format("{}: it makes no sense", doing));
  return record.instance();
}

std::optional<std::string> why_not_own(Host& host, const Places& places, const std::string& seen) {
  const auto instance = read_instance(host, places);
  if (!instance) return instance.error().message;
  if (*instance == seen) return std::nullopt;
  return instance->empty() ? "" : "the controller sees another agent of this name";
}

}  // namespace muster::rollout
