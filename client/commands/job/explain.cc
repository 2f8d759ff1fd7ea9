// muster explain KEY: explains a key of the job spec.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "common/spec/explain.h"

namespace muster::client {

void add_explain(CLI::App& app, Context& context, int& exit) {
  auto key = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("explain", "Say what a key of the job spec means; without KEY, list them");
  command->add_option("key", *key, "dotted, e.g. resources.devices")->type_name("");
  command->footer("example:      muster explain recovery.max_restarts");
  on_chosen(*command, context, exit, [key](const Context&) -> Result<int> {
    auto text = spec::explain(*key);
    if (!text) return fail(std::move(text.error()));
    fmt::print("{}", *text);
    return kOk;
  });
}

}  // namespace muster::client
