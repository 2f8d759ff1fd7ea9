// muster validate: reports every problem of a spec at once, without a controller.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/job/spec_file.h"
#include "client/commands/job/submit.h"

namespace muster::client {

void add_validate(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<SpecOptions>();
  CLI::App* command = app.add_subcommand(
      "validate", "Check a job spec: every problem at once, with line and column");
  add_spec_options(*command, *options);
  command->footer("exit:         0 the spec is sound  64 it is not; no controller is needed");
  on_chosen(*command, context, exit, [options](const Context& chosen) -> Result<int> {
    auto spec = load_spec(*options);
    if (!spec) return fail(std::move(spec.error()));
    tell_notes(chosen, *spec);
    std::string stages;
    for (const v1::JobSpec& stage : spec->stages)
      stages += fmt::format("{}{}", stages.empty() ? ": " : ", ", stage.stage().name());
    const std::size_t count = spec->stages.size();
    fmt::print(
        "{}: sound{}\n", options->file,
        count == 0 ? "" : fmt::format(", {} stage{}{}", count, count == 1 ? "" : "s", stages));
    return kOk;
  });
}

}  // namespace muster::client
