// The `muster` binary: wiring only. Verbs live in client/commands, a file each.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "client/commands/commands.h"
#include "common/base/version.h"

namespace {

// What CLI11 says, as a sentence that names the verb and where to look.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  const CLI::App* command = &app;
  std::string verb = "muster";
  for (auto chosen = command->get_subcommands(); !chosen.empty(); chosen = command->get_subcommands()) {
    command = chosen.front();
    verb += " " + command->get_name();
  }
  const std::string see = fmt::format("see '{} --help'", verb);
  if (error.get_name() == "RequiredError" && !command->get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); }).empty()) {
    std::vector<std::string> verbs;
    for (const CLI::App* each : command->get_subcommands([](const CLI::App*) { return true; })) verbs.push_back(each->get_name());
    const std::string list = fmt::format("{}", fmt::join(verbs, ", "));
    // The first word behind the verbs that were understood is what was meant as one.
    int at = 1;
    for (const CLI::App* level = &app; level != command; level = level->get_subcommands().front()) {
      while (at < argc && level->get_subcommands().front()->get_name() != argv[at]) ++at;
      ++at;
    }
    if (at < argc && argv[at][0] != '-') return fmt::format("'{}' is no verb of '{}'; there are: {}; {}", argv[at], verb, list, see);
    return fmt::format("'{}' wants a verb: {}; {}", verb, list, see);
  }
  return fmt::format("{}: {}; {}", verb, error.what(), see);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace muster::client;
  std::signal(SIGPIPE, SIG_DFL);  // `muster logs | head` ends quietly

  Context context;
  context.out = muster::render::style_of(STDOUT_FILENO);
  context.err = muster::render::style_of(STDERR_FILENO);
  int exit = kOk;

  CLI::App app("muster launches large-model training on the nodes of a cluster and keeps it alive: after any failure the job goes on from its last whole checkpoint.", "muster");
  app.set_version_flag("--version", std::string(muster::kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  app.add_option("--controller", context.controller, "unix:/path, host:port, or an endpoint file (default: the private cluster's)")->envname("MUSTER_CONTROLLER");
  app.add_option("--token-file", context.token_file, "the cluster's token, for host:port; an endpoint file names its own")->envname("MUSTER_TOKEN_FILE");
  app.footer(
      "first steps:  muster local up            a private cluster on this machine\n"
      "              muster run job.yaml        submit and follow; Ctrl-C detaches, the job goes on\n"
      "              muster ps | why | logs     where it stands, why it waits, what it wrote\n"
      "exit codes:   0 success  1 the job failed  2 cannot be placed  3 cancelled  4 timed out  10 not found  11 not allowed\n"
      "              12 conflict or ambiguous  13 controller unreachable  64 usage or invalid spec  70 internal");
  for (const auto add : {add_run, add_plan, add_validate, add_explain, add_ps, add_show, add_why, add_logs, add_events, add_watch, add_wait, add_cancel, add_ckpt, add_env, add_node, add_local, add_version}) {
    add(app, context, exit);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "muster: {}\n", usage_text(app, error, argc, argv));
    return kUsage;
  }
  return exit;
}
