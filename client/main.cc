// The `muster` binary only connects its parts. The verbs are in client/commands, one file for each.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "client/commands/call/commands.h"
#include "client/commands/call/out.h"
#include "client/commands/call/usage.h"
#include "client/import/stand_in.h"
#include "common/base/version.h"
#include "common/base/wall_clock_offset.h"
#include "common/pki/openssl_process.h"
#include "common/rpc/grpc_log.h"
#include "deploy/ssh/askpass.h"

namespace {

using namespace muster::client;

constexpr const char* kFirstSteps =
    "first steps:  muster local up            a private cluster on this machine\n"
    "              muster run job.yaml        submit and follow; Ctrl-C detaches, the job goes on\n"
    "              muster ps | why | logs     where it stands, why it waits, what it wrote\n"
    "exit codes:   0 success  1 the job failed  2 cannot be placed  3 cancelled  4 timed out  10 "
    "not found  11 not allowed\n"
    "              12 conflict or ambiguous  13 controller unreachable  64 usage or invalid spec  "
    "70 internal\n"
    "variables:    every flag has one: MUSTER_CONTROLLER, MUSTER_CREDENTIALS, MUSTER_OUTPUT for "
    "every -o, else MUSTER_<VERB>_<FLAG>: MUSTER_LOGS_TAIL=100";

int run_verb(int argc, char** argv) {
  Context context;
  context.out = muster::render::style_of(STDOUT_FILENO);
  context.err = muster::render::style_of(STDERR_FILENO);
  int exit = kOk;
  // The parser would split words of another program's command line that look like a list ("[0,8]").
  char** const behind = std::find_if(argv + std::min(1, argc), argv + argc, [](const char* word) {
    return std::string_view(word) == "--";
  });
  if (behind != argv + argc) {
    context.command.emplace(behind + 1, argv + argc);
    argc = static_cast<int>(behind - argv);
  }

  CLI::App app(
      "muster launches large-model training on the nodes of a cluster and keeps it alive: after "
      "any failure the job goes on from its last whole checkpoint.",
      "muster");
  app.formatter(help_formatter());
  app.set_version_flag("--version", std::string(muster::kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  app.add_option("--controller", context.controller,
                 "unix:/path, host:port, or an endpoint file (default: that of the private "
                 "cluster, where there "
                 "is one, else that of 'muster login')")
      ->type_name("ADDRESS");
  app.add_option("--credentials", context.credentials,
                 "for host:port: your key and certificate, as 'muster cert issue' makes them "
                 "(default: those "
                 "of 'muster login')")
      ->type_name("FILE");
  for (const auto add :
       {add_run,     add_import, add_plan,  add_validate,   add_explain, add_ps,
        add_show,    add_why,    add_logs,  add_events,     add_watch,   add_wait,
        add_cancel,  add_resume, add_ckpt,  add_ranktable,  add_env,     add_node,
        add_cluster, add_doctor, add_cert,  add_token,      add_secret,  add_store,
        add_login,   add_logout, add_local, add_completion, add_deploy,  add_version}) {
    add(app, context, exit);
  }
  app.footer(kFirstSteps);  // after the verbs, which would inherit it
  name_variables(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    if (const std::string unknown = unknown_verb(app, argc, argv); !unknown.empty()) {
      fmt::print(stderr, "muster: {}\n", unknown);
      return kUsage;
    }
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "muster: {}\n", usage_text(app, error, argc, argv));
    return kUsage;
  }
  return exit;
}

}  // namespace

int main(int argc, char** argv) {
  if (muster::ssh::is_askpass(argc)) return muster::ssh::run_askpass(argv[1]);
  if (argc > 0 && muster::import::is_stand_in(argv[0]))
    return muster::import::run_stand_in(argc, argv);
  muster::pki::prepare_openssl();
  muster::rpc::silence_grpc();
  std::signal(SIGPIPE, SIG_DFL);  // `muster logs | head` ends without an error
  if (const auto offset = muster::wall_clock_offset(); !offset) {
    fmt::print(stderr, "muster: {}\n", offset.error().message);
    return kUsage;
  }
  try {
    const int exit = run_verb(argc, argv);
    flush_out();
    return exit;
  } catch (const std::exception& error) {  // stdout on a full disk, no memory
    fmt::print(stderr, "muster: {}\n", error.what());
    return kInternal;
  }
}
