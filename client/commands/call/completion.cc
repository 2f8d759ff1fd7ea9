// muster completion bash | zsh: prints a script with which a shell completes muster's words.
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/completion_script.h"

namespace muster::client {

void add_completion(CLI::App& app, Context& context, int& exit) {
  CLI::App* group = app.add_subcommand(
      "completion", "Print a script with which your shell completes verbs, options and jobs");
  group->require_subcommand(1);
  group->footer(
      "bash:  source <(muster completion bash)      in ~/.bashrc\n"
      "zsh:   source <(muster completion zsh)       in ~/.zshrc, behind compinit\n"
      "The .deb has both installed already.");
  const auto add = [&](const char* shell, std::string (*script)(const CLI::App&)) {
    CLI::App* command = group->add_subcommand(shell, fmt::format("The script for {}", shell));
    on_chosen(*command, context, exit, [&app, script](const Context&) -> Result<int> {
      fmt::print("{}", script(app));
      return kOk;
    });
  };
  add("bash", bash_completion);
  add("zsh", zsh_completion);
}

}  // namespace muster::client
