// The steps of a start that prepare what is executed: Container and Record.
#include <utility>

#include "agent/container/container_prepare.h"
#include "agent/launch/core_shares.h"
#include "agent/launch/shim_dir.h"
#include "agent/start/start_work.h"

namespace muster::agent {

StepResult step_container(StartWork& work) {
  work.progress->set_text([news = work.image.news] {
    const std::string text = news->text();
    return text.empty() ? text : "runtime.image: " + text;
  });
  auto prepared = prepare_container(work.order, work.container, work.context, work.image);
  if (!prepared) return std::unexpected(refusal_of(prepared.error()));
  work.container_launch = std::move(prepared->launch);
  work.context.image_env = std::move(prepared->env);
  return {};
}

StepResult step_record(StartWork& work) {
  const v1::NodeLaunch& order = work.order;
  if (order.script().intercept()) {
    if (auto shim = make_shim_dir(work.layout, work.context.worker, order, work.context.path);
        !shim)
      return std::unexpected(refusal_of(shim.error()));
  }
  auto launch = make_launch(order, work.context);
  if (!launch) return std::unexpected(refusal_of(launch.error()));
  work.launch = std::move(*launch);
  for (const v1::InputState& one : work.inputs) work.launch.add_inputs(one.SerializeAsString());
  if (order.has_container()) *work.launch.mutable_container() = work.container_launch;
  if (order.bind_cores()) bind_ranks(work.launch, order, work.node.numa_nodes, work.node.sys);
  return {};
}

}  // namespace muster::agent
