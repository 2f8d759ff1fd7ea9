// schedule.after of a YAML spec: one job, or a list of them.
#include <fmt/format.h>

#include "common/spec/read_spec.h"

namespace muster::spec {

void SpecReader::schedule_after(const Node& node, const KeyRow& row) {
  const std::string key(row.key);
  const auto add = [&](const Node& at) {
    v1::ScheduleSpec& schedule = *spec_.mutable_schedule();
    places_[fmt::format("{}[{}]", key, schedule.after_size())] = {at.line, at.column};
    schedule.add_after(at.text);
  };
  if (node.kind == Node::Kind::Null) return;
  if (node.kind == Node::Kind::Scalar) return add(node);
  if (node.kind != Node::Kind::List) return problem(node, key, fmt::format("must not be a map ({})", row.accepted));
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    if (item.bad) continue;
    if (item.kind == Node::Kind::Scalar)
      add(item);
    else
      item_problem(item, fmt::format("{}[{}]", key, i), fmt::format("must be one job ({})", row.accepted));
  }
}

}  // namespace muster::spec
