// muster token create | ls | revoke: the tokens with which new nodes join the cluster, and users
// log in.
#include <fmt/format.h>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/cert/new_token.h"
#include "client/render/json_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct CreateOptions {
  std::string nodes, user, file, lifetime = "24h";
  std::uint32_t uses = 1;
};

Result<int> create(const Context& context, const CreateOptions& options) {
  if (options.nodes.empty() == options.user.empty())
    return fail(ErrorCode::InvalidArgument, "making a token: give one of --node and --user");
  const auto lifetime = parse_timeout(options.lifetime, "--lifetime");
  if (!lifetime) return fail(Error(lifetime.error()));
  v1::CreateTokenRequest request;
  request.set_nodes(options.nodes);
  request.set_user(options.user);
  request.set_uses(options.uses);
  *request.mutable_lifetime() = to_proto(*lifetime);
  return make_token(context, request, options.file);
}

std::string state_text(const v1::Token& token, WallTime now) {
  if (token.has_revoked_at()) return "revoked";
  if (to_wall(token.ends_at()) < now) return "ended";
  return token.used() >= token.uses() ? "used up" : "open";
}

void print_tokens(const Context& context, const v1::ListTokensResponse& answer) {
  if (answer.tokens().empty()) {
    fmt::print(stderr, "there are no tokens; 'muster token create' makes one\n");
    return;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"TOKEN"},
                                  {"FOR", render::Align::Left, 12},
                                  {"STATE"},
                                  {"USED", render::Align::Right},
                                  {"CREATED", render::Align::Right},
                                  {"UNTIL"},
                                  {"BY"}},
                      .rows = {}};
  for (const auto& token : answer.tokens()) {
    const std::string state = state_text(token, now);
    table.rows.push_back(
        {token.id(),
         token.user().empty() ? token.nodes() + (token.may_replace() ? " (replaces it)" : "")
                              : "user " + token.user(),
         context.out.paint(state == "open" ? render::Tint::Good : render::Tint::Dim, state),
         fmt::format("{}/{}", token.used(), token.uses()),
         render::ago_text(token.created_at(), now), render::minute_text(token.ends_at()),
         token.actor()});
  }
  fmt::print("{}", render::to_text(table, context.out,
                                   render::is_terminal(1) ? render::terminal_width(1) : 0));
}

Result<int> list_tokens(const Context& context, const std::string& output) {
  const auto names = [](const v1::ListTokensResponse& answer) {
    std::string text;
    for (const auto& token : answer.tokens()) text += token.id() + "\n";
    return text;
  };
  return show_answer<v1::ListTokensResponse>(
      output, [&] { return ask(context, &Certificates::ListTokens, v1::ListTokensRequest()); },
      {.names = names,
       .document =
           [](const auto& answer, render::Format format) {
             return render::document_list(answer.tokens(), "Token", format);
           },
       .people = [&](const auto& answer, bool) { print_tokens(context, answer); }});
}

Result<int> revoke(const Context& context, const std::string& id) {
  v1::RevokeTokenRequest request;
  request.set_id(id);
  const auto answer = ask(context, &Certificates::RevokeToken, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{} revoked\n", render::printable(answer->token().id()));
  return kOk;
}

}  // namespace

void add_token(CLI::App& app, Context& context, int& exit) {
  CLI::App* command =
      app.add_subcommand("token", "Tokens with which new nodes join the cluster, and users log in");
  command->require_subcommand(1);
  CLI::App* making = command->add_subcommand(
      "create",
      "Make a token with which a node, or several, get their first certificate, or a user logs in");
  auto options = std::make_shared<CreateOptions>();
  making
      ->add_option("--node", options->nodes,
                   "the node's name, or a pattern with one '*': 'gpu-*' is for every name that "
                   "begins with gpu-")
      ->type_name("NAME|PATTERN");
  making
      ->add_option("--user", options->user,
                   "a personal token: this user logs in with it ('muster login --token-file')")
      ->type_name("NAME");
  making
      ->add_option("--uses", options->uses,
                   "how many nodes may join with it, or how often the user may log in, 1 to 10000")
      ->type_name("N")
      ->capture_default_str();
  making->add_option("--lifetime", options->lifetime, "how long it counts, 1h to 30d")
      ->type_name("TIME")
      ->capture_default_str();
  making
      ->add_option("-o,--output", options->file,
                   "write the token into this file of mode 0600; it must not exist (default: "
                   "standard output)")
      ->type_name("FILE");
  making->footer(
      "Only the user who runs the controller may do this, on its machine; --user also an admin "
      "over "
      "TCP.\n"
      "A node that is known already needs 'muster node replace NAME'.\n"
      "example:  muster token create --node 'gpu-*' --uses 16 -o join.token\n"
      "          muster token create --user ann -o ann.token\n"
      "exit codes: 0 made  11 not your controller  12 the file is there  13 controller "
      "unreachable");
  on_chosen(*making, context, exit,
            [options](const Context& chosen) { return create(chosen, *options); });
  CLI::App* ls = command->add_subcommand(
      "ls", "List tokens: open, used up, ended, revoked; never their secrets");
  auto output = std::make_shared<std::string>("table");
  add_output_option(*ls, *output);
  on_chosen(*ls, context, exit,
            [output](const Context& chosen) { return list_tokens(chosen, *output); });
  CLI::App* revoking = command->add_subcommand(
      "revoke",
      "End a token: nobody joins or logs in with it any more. Nodes that have joined stay");
  auto id = std::make_shared<std::string>();
  revoking->add_option("token", *id, "its id, from 'muster token ls'")->required()->type_name("ID");
  revoking->footer(
      "The nodes that joined with it, and the user who logged in, keep their certificates: 'muster "
      "cert revoke' ends those.\n"
      "exit codes: 0 revoked  10 no such token  11 not your controller");
  on_chosen(*revoking, context, exit, [id](const Context& chosen) { return revoke(chosen, *id); });
}

}  // namespace muster::client
