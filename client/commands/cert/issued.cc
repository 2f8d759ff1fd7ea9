#include "client/commands/cert/issued.h"

#include <fmt/format.h>

#include "client/commands/call/call.h"
#include "client/render/json_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct RevokeOptions {
  std::string node, user, serial, why;
};

std::string owner_text(const v1::Certificate& one) {
  return one.has_user() ? "user " + one.user() : "node " + one.node();
}

void print_certificates(const Context& context, const v1::ListCertificatesResponse& answer,
                        bool wide) {
  if (answer.certificates().empty()) {
    fmt::print(stderr,
               "no certificate was issued; 'muster cert issue' and 'muster token create' "
               "are for that\n");
    return;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"OF", render::Align::Left, 12},
                                  {"STATE"},
                                  {"ISSUED", render::Align::Right},
                                  {"UNTIL"},
                                  {"BY", render::Align::Left, 8},
                                  {"WHY"}},
                      .rows = {}};
  if (wide) {
    table.columns.push_back({"SERIAL"});
    table.columns.push_back({"KEY (SHA-256)"});
  }
  for (const auto& one : answer.certificates()) {
    const bool ended = to_wall(one.not_after()) < now;
    const std::string state = one.has_revoked_at() ? "revoked" : ended ? "ended" : "counts";
    std::vector<std::string> row = {owner_text(one),
                                    context.out.paint(state == "counts"    ? render::Tint::Good
                                                      : state == "revoked" ? render::Tint::Bad
                                                                           : render::Tint::Dim,
                                                      state),
                                    render::ago_text(one.issued_at(), now),
                                    render::minute_text(one.not_after()),
                                    one.actor(),
                                    one.why().empty() ? "-" : one.why()};
    if (wide) {
      row.push_back(one.serial());
      row.push_back(one.key_sha256());
    }
    table.rows.push_back(std::move(row));
  }
  // A serial or a digest that is cut is of no use: `wide` is never cut.
  const std::size_t width = !wide && render::is_terminal(1) ? render::terminal_width(1) : 0;
  fmt::print("{}", render::to_text(table, context.out, width));
}

// All pages.
Result<v1::ListCertificatesResponse> fetch_certificates(const Context& context) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  v1::ListCertificatesResponse all;
  v1::ListCertificatesRequest request;
  do {
    auto page = ask(*session, &Certificates::ListCertificates, request);
    if (!page) return fail(std::move(page.error()));
    all.mutable_certificates()->MergeFrom(page->certificates());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

Result<int> list_certificates(const Context& context, const std::string& output) {
  const auto names = [](const v1::ListCertificatesResponse& answer) {
    std::string text;
    for (const auto& one : answer.certificates()) text += one.serial() + "\n";
    return text;
  };
  return show_answer<v1::ListCertificatesResponse>(
      output, [&] { return fetch_certificates(context); },
      {.names = names,
       .document =
           [](const auto& answer, render::Format format) {
             return render::document_list(answer.certificates(), "Certificate", format);
           },
       .people = [&](const auto& answer,
                     bool wide) { print_certificates(context, answer, wide); }});
}

Result<int> revoke(const Context& context, const RevokeOptions& options) {
  const int given = (options.node.empty() ? 0 : 1) + (options.user.empty() ? 0 : 1) +
                    (options.serial.empty() ? 0 : 1);
  if (given != 1)
    return fail(ErrorCode::InvalidArgument,
                "revoking certificates: give one of a node's name, --user and --serial");
  v1::RevokeCertificateRequest request;
  if (!options.node.empty()) request.set_node(options.node);
  if (!options.user.empty()) request.set_user(options.user);
  if (!options.serial.empty()) request.set_serial(options.serial);
  request.set_why(options.why);
  const auto answer = ask(context, &Certificates::RevokeCertificate, request);
  if (!answer) return fail(Error(answer.error()));
  const std::string whose = !options.node.empty()   ? fmt::format("node '{}'", options.node)
                            : !options.user.empty() ? fmt::format("user '{}'", options.user)
                                                    : "serial " + options.serial;
  fmt::print("{} revoked\n", render::printable(whose));
  if (answer->certificates() == 0)
    fmt::print(stderr,
               "{} the controller has no record of a certificate of {}: is the name right? One "
               "that an earlier release issued to it counts no more either\n",
               context.err.paint(render::Tint::Dim, "note:"), render::printable(whose));
  return kOk;
}

}  // namespace

void add_issued_verbs(CLI::App& cert, Context& context, int& exit) {
  CLI::App* ls = cert.add_subcommand(
      "ls", "List the certificates that were issued, until 30 days after their end");
  auto output = std::make_shared<std::string>("table");
  add_output_option(*ls, *output);
  ls->footer("-o wide adds each certificate's serial and the SHA-256 of its key.");
  on_chosen(*ls, context, exit,
            [output](const Context& chosen) { return list_certificates(chosen, *output); });
  CLI::App* revoking = cert.add_subcommand(
      "revoke",
      "Make certificates count no more, at once: open streams end, new calls are refused");
  auto options = std::make_shared<RevokeOptions>();
  revoking->add_option("node", options->node, "every certificate of this node until now")
      ->type_name("NODE");
  revoking->add_option("--user", options->user, "every certificate of this user until now")
      ->type_name("NAME");
  revoking
      ->add_option("--serial", options->serial,
                   "the key of this one certificate, from 'muster cert ls -o wide'")
      ->type_name("SERIAL");
  revoking->add_option("--why", options->why, "kept, and shown to whoever is refused")
      ->type_name("TEXT")
      ->required();
  revoking->footer(
      "The node's ranks go on for their orphan grace, as when its network fails; 'muster node "
      "declare-dead' is for the machine.\n"
      "Afterwards 'muster node replace NODE' or 'muster cert issue' lets it come back with a new "
      "key.\n"
      "example:  muster cert revoke gpu-17 --why 'the machine is lost'\n"
      "exit codes: 0 revoked  10 no such serial  11 not your controller  13 controller "
      "unreachable");
  on_chosen(*revoking, context, exit,
            [options](const Context& chosen) { return revoke(chosen, *options); });
}

}  // namespace muster::client
