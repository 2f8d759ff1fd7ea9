#include "controller/launch/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/model/engine.h"

namespace muster::controller {
namespace {

constexpr std::size_t kWordCost = 32, kVariableCost = 128;  // of a plan, beyond the text itself

std::uint32_t devices_a_node(const v1::JobSpec& spec) {
  const v1::ResourceSpec& wanted = spec.resources();
  return wanted.device_ids().empty() ? wanted.devices()
                                     : static_cast<std::uint32_t>(wanted.device_ids_size());
}

// The part with the longest texts: the last node's, of an attempt that resumes, with names and
// numbers of maximum length.
struct Longest {
  engine::LaunchRequest request;
  std::size_t node = 0;
};
Longest longest(const v1::JobSpec& spec) {
  const bool once = spec.launch().per() == v1::LAUNCH_PER_ONCE;
  const std::uint32_t devices = devices_a_node(spec),
                      nodes = std::max<std::uint32_t>(1, spec.resources().nodes());
  Longest result;
  result.node = once ? 0 : nodes - 1;
  engine::LaunchRequest& request = result.request;
  request = {.spec = &spec,
             .job_id = std::string(13, '0'),
             .attempt = 2,
             .master_port = 65535,
             .resume_step = 1'000'000'000'000,
             .imagined = true};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::uint32_t ranks = engine::ranks_on_node(spec, i, devices);
    request.nodes.push_back({.first_rank = RankNo(once ? std::min<std::uint32_t>(i, 1) : i * ranks),
                             .rank_count = ranks});
  }
  request.nodes.front().address = std::string(45, '1');
  engine::PlacedNode& slot = request.nodes[result.node];
  slot.node = NodeName(std::string(63, 'n'));
  slot.address = std::string(45, '1');
  slot.device_type = "ascend910_93";
  slot.interface = std::string(15, 'i');
  slot.hccl_port = 65'504;
  for (engine::PlacedNode& one : request.nodes) {  // a rank table of super-pods is longer
    one.super_pod_id = std::string(10, '9');
    one.super_device_ids.assign(one.rank_count, std::string(10, '9'));
  }
  slot.devices.assign(spec.resources().device_ids().begin(), spec.resources().device_ids().end());
  for (std::uint32_t device = 1000; slot.devices.size() < devices; ++device)
    slot.devices.push_back(device);
  request.out_dir = engine::out_dir(spec, request.job_id, "/" + std::string(1000, 'o'));
  request.save_dir = request.resume_source =
      engine::save_dir(spec, request.out_dir, request.attempt);
  request.resume_dir = request.start_dir =
      engine::resume_dir(spec, request.out_dir, request.attempt);
  request.unresolved = true;
  return result;
}

std::string_view heaviest_arguments(const v1::JobSpec& spec) {
  const auto bytes = [](const auto& words) {
    std::size_t sum = 0;
    for (const std::string& word : words) sum += word.size() + 1;
    return sum;
  };
  const std::array<std::pair<std::size_t, std::string_view>, 3> keys = {
      std::pair{bytes(spec.launch().args()), "launch.args"},
      std::pair{bytes(spec.launch().run()), "launch.run"},
      std::pair{bytes(spec.resume().args()), "resume.args"}};
  return std::ranges::max_element(keys)->second;
}

std::string_view heaviest_variables(const v1::JobSpec& spec) {
  const auto bytes = [](const auto& variables) {
    std::size_t sum = 0;
    for (const auto& [name, value] : variables) sum += name.size() + value.size() + 1;
    return sum;
  };
  return bytes(spec.resume().env()) > bytes(spec.runtime().env()) ? "resume.env" : "runtime.env";
}

// Of all ranks of one node together.
struct Weight {
  std::size_t arguments = 0, variables = 0, files = 0, all = 0;
};

Result<void> judge(const v1::JobSpec& spec, std::uint32_t ranks, const Weight& weight,
                   std::size_t most) {
  if (weight.all <= most) return {};
  if (weight.files > weight.arguments + weight.variables) {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("planning job '{}': resources.nodes: the rank table of {} ranks comes to {} "
                    "MiB, and a node is sent at most {} MiB; ask for fewer nodes, or use "
                    "launch.launcher: msrun",
                    spec.name(),
                    std::uint64_t{ranks} * std::max<std::uint32_t>(1, spec.resources().nodes()),
                    (weight.files + (1U << 20U) - 1) >> 20U, most >> 20U));
  }
  const bool arguments = weight.arguments >= weight.variables;
  return fail(
      ErrorCode::InvalidArgument,
      fmt::format("planning job '{}': {}: the {} of a node's {} rank{} come to {} MiB, at most {} "
                  "MiB; put what is long into a file that the ranks read",
                  spec.name(), arguments ? heaviest_arguments(spec) : heaviest_variables(spec),
                  arguments ? "arguments" : "variables", ranks, ranks == 1 ? "" : "s",
                  (weight.all + (1U << 20U) - 1) >> 20U, most >> 20U));
}

Weight planned(const engine::RankPlan& rank, std::uint32_t ranks) {
  Weight weight;
  for (const std::string& word : rank.argv) weight.arguments += word.size() + kWordCost;
  for (const auto& [name, value] : rank.env)
    weight.variables += name.size() + value.text.size() + kVariableCost;
  weight.arguments *= ranks;
  weight.variables *= ranks;
  weight.all = weight.arguments + weight.variables;
  return weight;
}

Weight sent(const v1::NodeLaunch& launch) {
  Weight weight{.all = launch.ByteSizeLong()};
  for (const auto& [name, value] : launch.env()) weight.variables += name.size() + value.size();
  for (const v1::LaunchFile& file : launch.files()) weight.files += file.content().size();
  for (const v1::RankProcess& rank : launch.ranks()) {
    for (const std::string& word : rank.argv()) weight.arguments += word.size();
    for (const auto& [name, value] : rank.env()) weight.variables += name.size() + value.size();
  }
  return weight;
}

}  // namespace

Result<void> check_launches(const v1::JobSpec& spec) {
  Longest most = longest(spec);
  const engine::PlacedNode& slot = most.request.nodes[most.node];
  // Plans one rank first, before memory is used for all of them.
  most.request.only =
      engine::RankRange{.first = slot.first_rank.value + slot.rank_count - 1, .count = 1};
  const auto one = engine::plan_launch(most.request);
  if (!one) return fail(one.error());
  if (auto fits =
          judge(spec, slot.rank_count, planned(one->ranks.back(), slot.rank_count), kPlanBytesMax);
      !fits)
    return fits;
  most.request.table = one->table;
  most.request.only = engine::RankRange{.first = slot.first_rank.value, .count = slot.rank_count};
  const auto all = engine::plan_launch(most.request);
  if (!all) return fail(all.error());
  return judge(spec, slot.rank_count, sent(engine::node_launch(most.request, *all, most.node)),
               kPartBytesMax);
}

}  // namespace muster::controller
