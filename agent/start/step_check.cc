// The step Check of a start.
#include <utility>

#include "agent/start/start_work.h"

namespace muster::agent {

StepResult step_check(StartWork& work) {
  const v1::NodeLaunch& order = work.order;
  if (work.fill_facts) work.fill_facts(work.node);
  if (auto refusal = check_devices(order, work.node)) return std::unexpected(*std::move(refusal));
  if (auto refusal = check_user(order, work.context.user, work.context.set_user))
    return std::unexpected(*std::move(refusal));
  if (auto refusal = check_room(order, work.node)) return std::unexpected(*std::move(refusal));
  if (!order.has_code()) {  // otherwise the copy of the code does not exist yet
    if (auto refusal = check_files(order)) return std::unexpected(*std::move(refusal));
  }
  if (auto refusal = check_ports(order)) return std::unexpected(*std::move(refusal));
  return {};
}

}  // namespace muster::agent
