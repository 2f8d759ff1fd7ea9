// Job specs: YAML bytes -> JobSpec, the controller's second check of it, and the plan of a
// placement that fits. Lines "#set KEY=VALUE" and "#env NAME=VALUE" are comments in YAML; they are
// also passed in as overrides.
#include <algorithm>
#include <string>
#include <vector>

#include "common/base/utf8.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/start.h"
#include "common/spec/keys/values.h"
#include "common/spec/parse.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kOverridesMax = 16;

spec::ParseOptions options_of(std::string_view text) {
  spec::ParseOptions options{.base_dir = "/home/ada/exp"};
  for (std::size_t at = 0;
       at < text.size() && options.set.size() + options.env.size() < kOverridesMax;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals < 5) continue;
    if (line.starts_with("#set "))
      options.set.emplace_back(line.substr(5, equals - 5), line.substr(equals + 1));
    if (line.starts_with("#env "))
      options.env.emplace_back(line.substr(5, equals - 5), line.substr(equals + 1));
  }
  return options;
}

// Up to four nodes that fit the spec.
std::vector<engine::PlacedNode> nodes_for(const v1::JobSpec& spec) {
  std::vector<std::uint32_t> devices(spec.resources().device_ids().begin(),
                                     spec.resources().device_ids().end());
  for (std::uint32_t id = 0; devices.empty() && id < std::max(1U, spec.resources().devices()); ++id)
    devices.push_back(id);
  const bool once = spec.launch().per() == v1::LAUNCH_PER_ONCE;
  std::vector<engine::PlacedNode> nodes;
  for (std::uint32_t n = 0; n < std::max(1U, spec.resources().nodes()); ++n) {
    engine::PlacedNode node{.node = NodeName("n" + std::to_string(n)),
                            .address = "10.20.0." + std::to_string(11 + n),
                            .devices = devices,
                            .device_type = "ascend",
                            .interface = "eth2",
                            .device_model = "910B3"};
    for (const std::uint32_t id : devices)
      node.device_ips.push_back("192." + std::to_string(id % 256) + ".11." +
                                std::to_string(10 + n));
    node.first_rank = RankNo(once ? 0 : n * static_cast<std::uint32_t>(devices.size()));
    node.rank_count = once ? (n == 0 ? 1 : 0) : static_cast<std::uint32_t>(devices.size());
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// What the controller finds out about a chain's stages, and about what they take from each other.
v1::ResolvedSpec resolve(const v1::JobSpec& spec, const std::vector<v1::JobSpec>& stages) {
  v1::ResolvedSpec resolved;
  for (const v1::JobSpec& stage : stages) {
    v1::StageDir& dir = *resolved.mutable_stage()->add_dirs();
    dir.set_stage(stage.stage().name());
    dir.set_out("/shared/muster/" + stage.stage().name());
  }
  for (const v1::InputSpec& input : spec.inputs())
    (*resolved.mutable_inputs())[input.name()] = "/shared/" + input.name();
  return resolved;
}

void check_plan(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved) {
  if (spec.resources().nodes() > 4 || spec.resources().devices() > 16 ||
      spec.resources().device_ids_size() > 16)
    return;
  for (const bool resuming : {false, true}) {
    engine::LaunchRequest request{.spec = &spec,
                                  .resolved = &resolved,
                                  .job_id = "01j8x4a0b7c2d",
                                  .attempt = resuming ? 2U : 1U,
                                  .master_port = 29500};
    request.nodes = nodes_for(spec);
    request.out_dir = engine::out_dir(spec, request.job_id, "/shared/muster");
    request.save_dir = engine::save_dir(spec, request.out_dir, request.attempt);
    if (engine::starts_as_weights(spec)) request.start_dir = request.out_dir + "/start";
    if (resuming) {
      request.resume_dir = engine::resume_dir(spec, request.out_dir, request.attempt);
      request.resume_source = engine::save_dir(spec, request.out_dir, 1);
      request.resume_step = 40;
    }
    const auto plan = engine::plan_launch(request);
    if (!plan) {
      // Only a placement can show these errors: the rules of rank tables, and of Ascend's runtime.
      const std::string& why = plan.error().message;
      require(is_message(why), "an error is a sentence", why);
      require(why.find(": launch.launcher: ") != std::string::npos ||
                  why.find(": resources.devices: ") != std::string::npos,
              "a sound spec can be planned", why);
      continue;
    }
    require(plan->ranks.size() == request.world_size(), "a plan has every rank");
    for (const engine::RankPlan& rank : plan->ranks)
      require(!rank.argv.empty() && !rank.argv.front().empty() && !rank.cwd.empty(),
              "a rank can be started");
    std::string bytes;
    require(engine::node_launch(request, *plan, 0).SerializeToString(&bytes),
            "an order can be sent");
  }
}

void check_values(std::string_view input) {
  const auto sentence = [](const auto& result) {
    if (!result)
      require(is_message(result.error().message), "an error is a sentence", result.error().message);
    return result.has_value();
  };
  if (const auto duration = spec::parse_duration(input); sentence(duration)) {
    const auto again = spec::parse_duration(spec::format_duration(*duration));
    require(again && *again == *duration, "a duration is read back as it is",
            spec::format_duration(*duration));
  }
  sentence(spec::parse_size(input));
  if (const auto number = spec::parse_number(input, 3, 1'000'000); sentence(number))
    require(*number >= 3 && *number <= 1'000'000, "a number is in its range");
  if (const auto devices = spec::parse_device_range(input); sentence(devices))
    require(!devices->empty() && devices->size() <= 1024 && std::ranges::is_sorted(*devices),
            "a range of devices is one");
  // where names are reported, they are made printable
  (void)engine::template_names(input);
}

}  // namespace

void spec(std::string_view input) {
  const spec::Parsed parsed = spec::parse_yaml(input, options_of(input));
  require(parsed.problems.size() <= 100, "problems are bounded");
  for (const spec::Problem& problem : parsed.problems) {
    require(is_message(problem.message), "a problem is a sentence", problem.message);
    require(is_utf8(problem.key), "a key is text", problem.key);
  }
  require(parsed.problems.empty() || is_message(spec::format(parsed.problems, "job.yaml")),
          "problems can be printed");
  std::vector<v1::JobSpec> specs = parsed.stages;
  if (parsed.stages.empty()) specs.push_back(parsed.spec);
  require(parsed.stages.size() <= 32, "stages are bounded");
  for (const v1::JobSpec& one : specs) {
    if (!parsed.problems.empty()) break;
    v1::JobSpec again = one;
    const auto problems = spec::complete(again);
    require(problems.empty(), "a sound spec is sound for the controller",
            problems.empty() ? "" : spec::format(problems, ""));
    require(spec::spec_hash(again) == spec::spec_hash(one), "a complete spec is complete");
    check_plan(one, resolve(one, parsed.stages));
  }
  if (input.size() <= 64 && is_utf8(input)) check_values(input);
}

}  // namespace muster::fuzz
