// muster validate: every problem of a spec at once, without a controller.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "client/commands/spec_file.h"

namespace muster::client {

void add_validate(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<SpecOptions>();
  CLI::App* command = app.add_subcommand("validate", "Check a job spec: every problem at once, with line and column");
  command->add_option("file", options->file, "job.yaml, or - for standard input")->required();
  command->add_option("--set", options->set, "KEY=VALUE over the file, e.g. resources.nodes=4");
  command->callback([&context, &exit, options] {
    const auto spec = load_spec(*options);
    if (!spec) {
      exit = report(context, spec.error());
      return;
    }
    fmt::print("{}: sound\n", options->file);
    exit = kOk;
  });
}

}  // namespace muster::client
