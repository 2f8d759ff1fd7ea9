// muster explain KEY: what a key of the job spec means.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/commands.h"
#include "common/spec/explain.h"

namespace muster::client {

void add_explain(CLI::App& app, Context& context, int& exit) {
  auto key = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("explain", "Say what a key of the job spec means; without KEY, list them");
  command->add_option("key", *key, "dotted, e.g. resources.devices");
  command->callback([&context, &exit, key] {
    const auto text = spec::explain(*key);
    if (!text) {
      exit = report(context, text.error());
      return;
    }
    fmt::print("{}", *text);
    exit = kOk;
  });
}

}  // namespace muster::client
