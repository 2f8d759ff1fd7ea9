// Reads schedule.after of a YAML spec: one job, or a list of jobs.
#include <fmt/format.h>

#include "common/spec/names.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

void SpecReader::schedule_after(const Node& node, const KeyRow& row) {
  one_or_list(node, row, fmt::format("must be one job ({})", row.accepted), [&](const Node& at) {
    if (source_of(at.text).kind == "stage")
      return item_problem(at, std::string(row.key),
                          fmt::format("'{}': a stage of this spec is named by 'after' of the stage "
                                      "that comes behind it (stages: {{NAME: {{after: {}}}}})",
                                      shown(at.text), shown(source_of(at.text).name)));
    v1::ScheduleSpec& schedule = *spec_.mutable_schedule();
    places_[fmt::format("{}[{}]", row.key, schedule.after_size())] = {at.line, at.column};
    schedule.add_after(at.text);
  });
}

}  // namespace muster::spec
