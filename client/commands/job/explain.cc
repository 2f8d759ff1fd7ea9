// muster explain KEY: explains a key of the job spec.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "common/spec/explain.h"
#include "common/spec/schema.h"

namespace muster::client {

void add_explain(CLI::App& app, Context& context, int& exit) {
  struct Options {
    std::string key;
    bool schema = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("explain", "Say what a key of the job spec means; without KEY, list them");
  CLI::Option* key =
      command->add_option("key", options->key, "dotted, e.g. resources.devices")->type_name("");
  command
      ->add_flag("--schema", options->schema,
                 "print the whole spec as JSON Schema, for editors and for programs that "
                 "write specs")
      ->excludes(key);
  command->footer(
      "example:      muster explain recovery.max_restarts\n"
      "              muster explain --schema > muster.schema.json");
  on_chosen(*command, context, exit, [options](const Context&) -> Result<int> {
    if (options->schema) {
      fmt::print("{}", spec::json_schema());
      return kOk;
    }
    auto text = spec::explain(options->key);
    if (!text) return fail(std::move(text.error()));
    fmt::print("{}", *text);
    return kOk;
  });
}

}  // namespace muster::client
