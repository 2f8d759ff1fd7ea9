// muster secret set | ls | rm: values that a job's processes get as variables, and that nobody
// reads again.
#include <fmt/format.h>

#include <string>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/secret_value.h"
#include "client/render/json_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct SecretOptions {
  std::string name, file, owner;
  bool shared = false, all = false, exact = false;
};

Result<int> set_secret(const Context& context, const SecretOptions& options) {
  auto value = read_secret_value({.file = options.file,
                                  .what = "value of secret '" + options.name + "'",
                                  .exact = options.exact});
  if (!value) return fail(std::move(value.error()));
  v1::SetSecretRequest request;
  request.set_name(options.name);
  request.set_value(*std::move(value));
  request.set_shared(options.shared);
  const auto answer = ask(context, &Secrets::SetSecret, request);
  if (!answer) return fail(Error(answer.error()));
  const std::string name = render::printable(answer->secret().name());
  fmt::print("{} set\n", name);
  if (render::is_terminal(STDERR_FILENO))
    fmt::print(stderr, "hint: runtime: {{env: {{NAME: '${{secret:{}}}'}}}}\n", name);
  return kOk;
}

void print_secrets(const Context& context, const v1::ListSecretsResponse& answer) {
  if (answer.secrets().empty()) {
    fmt::print(stderr, "there are no secrets; 'muster secret set NAME < FILE' makes one\n");
    return;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"SECRET", render::Align::Left, 16},
                                  {"OWNER", render::Align::Left, 12},
                                  {"SET", render::Align::Right},
                                  {"BY"}},
                      .rows = {}};
  for (const v1::Secret& secret : answer.secrets())
    table.rows.push_back({secret.name(), secret.shared() ? "(shared)" : secret.owner(),
                          render::ago_text(secret.set_at(), now), secret.actor()});
  fmt::print("{}", render::to_text(table, context.out,
                                   render::is_terminal(1) ? render::terminal_width(1) : 0));
}

Result<int> list_secrets(const Context& context, const std::string& output, bool all) {
  v1::ListSecretsRequest request;
  request.set_all(all);
  const auto names = [](const v1::ListSecretsResponse& answer) {
    std::string text;
    for (const v1::Secret& secret : answer.secrets()) text += secret.name() + "\n";
    return text;
  };
  return show_answer<v1::ListSecretsResponse>(
      output, [&] { return ask(context, &Secrets::ListSecrets, request); },
      {.names = names,
       .document =
           [](const auto& answer, render::Format format) {
             return render::document_list(answer.secrets(), "Secret", format);
           },
       .people = [&](const auto& answer, bool) { print_secrets(context, answer); }});
}

Result<int> remove_secret(const Context& context, const SecretOptions& options) {
  v1::RemoveSecretRequest request;
  request.set_name(options.name);
  request.set_shared(options.shared);
  request.set_owner(options.owner);
  const auto answer = ask(context, &Secrets::RemoveSecret, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{} removed\n", render::printable(options.name));
  return kOk;
}

void add_set(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "set", "Make a secret, or give it another value: typed, from standard input or a file");
  auto options = std::make_shared<SecretOptions>();
  command->add_option("name", options->name, "as in ${secret:NAME}")->required()->type_name("NAME");
  command->add_option("--file", options->file, "read the value from this file")->type_name("FILE");
  command->add_flag("--exact", options->exact,
                    "keep a line end at the end of the value, which is left out else");
  command->add_flag("--shared", options->shared, "for every user's jobs; only admins");
  command->footer(
      "A job names it as the whole value of a variable: runtime: {env: {HF_TOKEN: "
      "'${secret:hf}'}}. Processes that run keep the value that they have; the next attempt gets "
      "the new one.\n"
      "The value is never an argument, where everybody on the machine would see it.\n"
      "example:  muster secret set hf < hf.token\n"
      "exit codes: 0 set  11 not allowed  13 controller unreachable  64 no name or value of a "
      "secret");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return set_secret(chosen, *options); });
}

void add_ls(CLI::App& app, Context& context, int& exit) {
  CLI::App* command =
      app.add_subcommand("ls", "List your secrets and the shared ones; never their values");
  auto options = std::make_shared<SecretOptions>();
  auto output = std::make_shared<std::string>("table");
  command->add_flag("--all", options->all, "of all users; only admins");
  add_output_option(*command, *output);
  on_chosen(*command, context, exit, [options, output](const Context& chosen) {
    return list_secrets(chosen, *output, options->all);
  });
}

void add_rm(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("rm", "Remove a secret: no further attempt gets it");
  auto options = std::make_shared<SecretOptions>();
  command->add_option("name", options->name, "its name")->required()->type_name("NAME");
  command->add_flag("--shared", options->shared, "a shared one; only admins");
  command->add_option("--owner", options->owner, "another user's; only admins")->type_name("USER");
  command->footer(
      "Processes that run keep the value. A job that needs it waits until it is set again.\n"
      "exit codes: 0 removed  10 no such secret  11 not allowed");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return remove_secret(chosen, *options); });
}

}  // namespace

void add_secret(CLI::App& app, Context& context, int& exit) {
  CLI::App* command =
      app.add_subcommand("secret", "Passwords and tokens that jobs get as variables: set, ls, rm");
  command->require_subcommand(1);
  add_set(*command, context, exit);
  add_ls(*command, context, exit);
  add_rm(*command, context, exit);
}

}  // namespace muster::client
