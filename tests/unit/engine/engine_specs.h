// Specs and placements that the tests of the engines' launches share. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/engine/model/engine.h"

namespace muster::engine {

inline v1::JobSpec spec_of(const char* engine, const std::vector<std::string>& args,
                           std::uint32_t nodes = 2, std::uint32_t devices = 2) {
  v1::JobSpec spec;
  spec.set_name("tiny");
  spec.set_engine(engine);
  spec.mutable_code()->set_at("/srv");
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
  spec.mutable_launch()->set_script(engine == std::string_view("mindformers") ? "run_mindformer.py"
                                                                              : "pretrain.py");
  for (const std::string& word : args) spec.mutable_launch()->add_args(word);
  spec.mutable_resources()->set_nodes(nodes);
  spec.mutable_resources()->set_devices(devices);
  spec.mutable_resources()->set_type("ascend");
  spec.mutable_resume()->set_enabled(true);
  return spec;
}

// Every node has the same devices; their ports have addresses.
inline LaunchRequest request_of(const v1::JobSpec& spec, std::size_t nodes = 2,
                                const std::vector<std::uint32_t>& devices = {0, 1}) {
  LaunchRequest request{
      .spec = &spec, .job_id = "01j8x4a0b7c2d", .attempt = 1, .master_port = 29500};
  for (std::size_t i = 0; i < nodes; ++i) {
    PlacedNode node{.node = NodeName("n" + std::to_string(i + 1)),
                    .address = "10.0.0." + std::to_string(i + 1),
                    .devices = devices,
                    .interface = "eth2"};
    node.first_rank = RankNo(static_cast<std::uint32_t>(i * devices.size()));
    node.rank_count = static_cast<std::uint32_t>(devices.size());
    for (const std::uint32_t device : devices)
      node.device_ips.push_back("192.168." + std::to_string(i) + "." + std::to_string(10 + device));
    request.nodes.push_back(std::move(node));
  }
  request.out_dir = "/out/j";
  request.save_dir = save_dir(spec, request.out_dir, 1);
  return request;
}

inline void resume_at(LaunchRequest& request, std::int64_t step) {
  request.attempt = 2;
  request.save_dir = save_dir(*request.spec, request.out_dir, 2);
  request.resume_dir = resume_dir(*request.spec, request.out_dir, 2);
  request.resume_step = step;
  request.resume_source = save_dir(*request.spec, request.out_dir, 1);
}

inline std::string env(const RankPlan& rank, const std::string& name) {
  const auto found = rank.env.find(name);
  return found == rank.env.end() ? "(unset)" : found->second.text;
}

// "key: message", one problem a line.
inline std::string problem_text(const v1::JobSpec& spec,
                                const v1::ResolvedSpec* resolved = nullptr) {
  std::string text;
  for (const KeyedProblem& problem : check_launch(spec, resolved))
    text += problem.key + ": " + problem.message + "\n";
  return text;
}

}  // namespace muster::engine
