#include "common/engine/model/host_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

struct Range {
  const char* name;
  std::uint32_t least, most;
  const char* means;
};
constexpr std::array<Range, 3> kRanges = {{
    {"HCCL_CONNECT_TIMEOUT", 120, 7200, "seconds"},
    {"HCCL_EXEC_TIMEOUT", 0, 2'147'483'647, "seconds; 0: never, not on 910"},
    {kHcclBasePort, 1024, 65'520, "the first of 32 ports"},
}};

using Variables = google::protobuf::Map<std::string, std::string>;

std::optional<std::uint32_t> number(const Variables& env, const char* name) {
  const auto found = env.find(name);
  return found == env.end() ? std::nullopt : ranktable::parse_number(found->second);
}

constexpr std::uint32_t kExecTimeoutDefault = 1836;   // HCCL's, seconds
constexpr std::uint32_t kEventTimeoutDefault = 1868;  // torch_npu's; 0: it waits for ever

void check_one(const Variables& env, const char* key, bool torch_like, Problems& problems) {
  for (const Range& range : kRanges) {
    const auto found = env.find(range.name);
    if (found == env.end() || found->second.find('$') != std::string::npos) continue;
    const auto value = ranktable::parse_number(found->second);
    if (!value || *value < range.least || *value > range.most)
      problems.push_back({.key = fmt::format("{}.{}", key, range.name),
                          .message = fmt::format("'{}' is refused by HCCL ({}..{}, {})",
                                                 ranktable::shown(found->second), range.least,
                                                 range.most, range.means)});
  }
  const auto exec = number(env, "HCCL_EXEC_TIMEOUT"), event = number(env, "HCCL_EVENT_TIMEOUT");
  if (exec == 0U || event == 0U || (!exec && !event) ||
      event.value_or(kEventTimeoutDefault) > exec.value_or(kExecTimeoutDefault))
    return;
  if (event && !exec) {
    problems.push_back(
        {.key = fmt::format("{}.HCCL_EVENT_TIMEOUT", key),
         .message = fmt::format("{} is not more than HCCL's own HCCL_EXEC_TIMEOUT, {}: torch_npu "
                                "would give up before HCCL says what is wrong; raise it, or set a "
                                "smaller HCCL_EXEC_TIMEOUT in addition to it",
                                *event, kExecTimeoutDefault)});
  } else if (event) {
    problems.push_back(
        {.key = fmt::format("{}.HCCL_EVENT_TIMEOUT", key),
         .message = fmt::format("{} is not more than HCCL_EXEC_TIMEOUT, {}: torch_npu would give "
                                "up before HCCL says what is wrong",
                                *event, *exec)});
  } else if (torch_like) {
    problems.push_back({.key = fmt::format("{}.HCCL_EXEC_TIMEOUT", key),
                        .message = fmt::format(
                            "{} needs HCCL_EVENT_TIMEOUT in addition to it, greater (or 0, never): "
                            "torch_npu's own, {}, would give up before HCCL says what is wrong",
                            *exec, kEventTimeoutDefault)});
  }
}

// HCCL and NCCL match a name as a prefix: "eth1" would also match eth10.
std::string exactly(const std::string& interface) { return "=" + interface; }

bool is_named(const LaunchRequest& request, const PlacedNode& node) {
  const std::string& named = request.spec->network().interface();
  return !named.empty() && named == node.interface;
}

}  // namespace

void put_hccl_address(const LaunchRequest& request, RankPlan& rank, const char* source) {
  const PlacedNode& node = request.nodes[rank.node];
  if (!is_ascend(device_type(request, node))) return;
  if (rank.env.contains("HCCL_IF_IP") || rank.env.contains("HCCL_SOCKET_IFNAME")) return;
  if (is_named(request, node)) put(rank.env, "HCCL_SOCKET_IFNAME", exactly(node.interface), source);
  const auto address = ranktable::parse_address(node.address);
  if (!address || !address->scope.empty() || ranktable::is_loopback(*address) ||
      ranktable::is_unspecified(*address))
    return;
  put(rank.env, "HCCL_IF_IP", node.address, source);
  if (address->v6) put_default(rank.env, "HCCL_SOCKET_FAMILY", "AF_INET6", source);
}

void put_hccl_port(const LaunchRequest& request, RankPlan& rank, const char* source) {
  const PlacedNode& node = request.nodes[rank.node];
  if (node.hccl_port != 0 && is_ascend(device_type(request, node)))
    put_default(rank.env, kHcclBasePort, std::to_string(node.hccl_port), source);
}

void put_host_network(const LaunchRequest& request, RankPlan& rank, const char* source) {
  const PlacedNode& node = request.nodes[rank.node];
  put_hccl_address(request, rank, source);
  if (device_type(request, node) == "nvidia" && is_named(request, node))
    put_default(rank.env, "NCCL_SOCKET_IFNAME", exactly(node.interface), source);
  if (!node.interface.empty()) put_default(rank.env, "GLOO_SOCKET_IFNAME", node.interface, source);
}

void check_ascending(const v1::JobSpec& spec, Problems& problems) {
  const auto& devices = spec.resources().device_ids();
  if (is_ascend(spec.resources().type()) && !std::ranges::is_sorted(devices))
    problems.push_back(
        {.key = "resources.devices",
         .message = fmt::format("[{}] does not ascend, and Ascend's runtime numbers devices "
                                "upwards: ranks would not get theirs; write them in ascending "
                                "order",
                                fmt::join(devices, ", "))});
}

void check_hccl_variables(const v1::JobSpec& spec, Problems& problems) {
  const Engine* engine = find_engine(spec.engine());
  const bool torch_like = engine != nullptr && engine->torch_workers;
  check_one(spec.runtime().env(), "runtime.env", torch_like, problems);
  Variables resumed = spec.runtime().env();
  for (const auto& [name, value] : spec.resume().env()) resumed[name] = value;
  if (!spec.resume().env().empty()) check_one(resumed, "resume.env", torch_like, problems);
}

}  // namespace muster::engine
