// Declares the verbs, one file for each. The functions have no state; main() calls each once. One
// thread.
//
// Each function adds its subcommand. If the user chose that subcommand, its callback stores the
// exit code in `exit`.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/call/context.h"

namespace muster::client {

void add_run(CLI::App& app, Context& context, int& exit);
void add_import(CLI::App& app, Context& context, int& exit);
void add_plan(CLI::App& app, Context& context, int& exit);
void add_validate(CLI::App& app, Context& context, int& exit);
void add_explain(CLI::App& app, Context& context, int& exit);
void add_ps(CLI::App& app, Context& context, int& exit);
void add_show(CLI::App& app, Context& context, int& exit);
void add_why(CLI::App& app, Context& context, int& exit);
void add_logs(CLI::App& app, Context& context, int& exit);
void add_events(CLI::App& app, Context& context, int& exit);
void add_watch(CLI::App& app, Context& context, int& exit);
void add_wait(CLI::App& app, Context& context, int& exit);
void add_cancel(CLI::App& app, Context& context, int& exit);
void add_resume(CLI::App& app, Context& context, int& exit);
void add_ckpt(CLI::App& app, Context& context, int& exit);
void add_env(CLI::App& app, Context& context, int& exit);
void add_node(CLI::App& app, Context& context, int& exit);
void add_cluster(CLI::App& app, Context& context, int& exit);
void add_doctor(CLI::App& app, Context& context, int& exit);
void add_cert(CLI::App& app, Context& context, int& exit);
void add_token(CLI::App& app, Context& context, int& exit);
void add_secret(CLI::App& app, Context& context, int& exit);
void add_store(CLI::App& app, Context& context, int& exit);
void add_login(CLI::App& app, Context& context, int& exit);
void add_logout(CLI::App& app, Context& context, int& exit);
void add_ranktable(CLI::App& app, Context& context, int& exit);
void add_deploy(CLI::App& app, Context& context, int& exit);
void add_local(CLI::App& app, Context& context, int& exit);
void add_completion(CLI::App& app, Context& context, int& exit);
void add_version(CLI::App& app, Context& context, int& exit);

}  // namespace muster::client
