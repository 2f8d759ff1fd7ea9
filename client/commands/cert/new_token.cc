#include "client/commands/cert/new_token.h"

#include <fmt/format.h>

#include <system_error>

#include "client/commands/call/call.h"
#include "client/commands/call/out.h"
#include "client/render/text.h"
#include "common/io/file.h"
#include "common/pki/credentials.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

Result<void> write_token(const std::string& file, const std::string& text) {
  const std::string doing = "writing the token";
  const auto created = io::create_file(file, text + "\n", io::Durable::Yes);
  if (!created) return fail(Error(created.error()).in(doing));
  if (!*created)
    return fail(ErrorCode::Conflict, fmt::format("{} to '{}': the file is there already; name "
                                                 "another one, or remove it",
                                                 doing, file));
  return {};
}

void print_token(const Context& context, const v1::Token& token, const std::string& file) {
  const auto line = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, value));
  };
  line("token", render::printable(token.id()));
  line("for", render::printable(token.user().empty() ? token.nodes() : "user " + token.user()));
  line("uses", fmt::format("{}", token.uses()));
  line("until", utc_text(to_wall(token.ends_at())));
  line("file", file);
}

}  // namespace

Result<int> make_token(const Context& context, const v1::CreateTokenRequest& request,
                       const std::string& file) {
  if (!file.empty()) {
    if (auto creatable = pki::check_creatable(file, "the token"); !creatable)
      return fail(std::move(creatable.error()));
  }
  auto answer = ask(context, &Certificates::CreateToken, request);
  if (!answer) return fail(std::move(answer.error()));
  const auto note = [&](const std::string& text) {
    fmt::print(stderr, "{} {}\n", context.err.paint(render::Tint::Dim, "note:"), text);
  };
  if (!file.empty()) {
    if (auto written = write_token(file, answer->text()); !written)
      return fail(
          std::move(written.error())
              .in(fmt::format("token '{0}' was made and is lost (`muster token revoke {0}`)",
                              answer->token().id())));
    print_token(context, answer->token(), file);
    note(request.user().empty()
             ? fmt::format("it holds a secret: carry '{}' over SSH, keep its mode 0600, and remove "
                           "it when the nodes have joined",
                           file)
             : fmt::format("it holds a secret: carry '{}' over SSH to its user alone, for 'muster "
                           "login --token-file', and remove it after that",
                           file));
    return kOk;
  }
  try {
    fmt::print("{}\n", render::printable(answer->text()));
    flush_out();
  } catch (const std::system_error& failed) {
    return fail(ErrorCode::Io,
                fmt::format("token '{0}' was made and is lost (`muster token revoke {0}`): {1}",
                            render::printable(answer->token().id()), failed.what()));
  }
  if (render::is_terminal(1))
    note(fmt::format(
        "whoever sees this line can {} until {}; -o FILE writes it into a file of "
        "mode 0600 instead, and `muster token revoke {}` ends it",
        request.user().empty() ? "join the cluster" : "log in as this user",
        utc_text(to_wall(answer->token().ends_at())), render::printable(answer->token().id())));
  return kOk;
}

}  // namespace muster::client
