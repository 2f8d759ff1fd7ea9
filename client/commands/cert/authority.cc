#include "client/commands/cert/authority.h"

#include <fmt/format.h>

#include "client/commands/call/call.h"
#include "client/commands/cert/next_step.h"
#include "client/render/json_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/io/file.h"
#include "common/pki/private_file.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

constexpr std::size_t kPemBytesMost = 16 << 10;

struct RotateOptions {
  std::string step;
  bool force = false;
};
struct ImportCaOptions {
  std::string certificate, key;
};

void print_authorities(const Context& context, const v1::ListAuthoritiesResponse& answer,
                       bool wide) {
  render::Table table{
      .columns = {{"CA (SHA-256)"}, {"STATE"}, {"FROM"}, {"UNTIL"}, {"NAME"}, {"WAITS FOR NODES"}},
      .rows = {}};
  for (const v1::Authority& one : answer.authorities()) {
    const bool signs = one.state() == v1::AUTHORITY_STATE_SIGNING;
    std::string nodes;
    for (const std::string& node : one.waiting_nodes())
      nodes += (nodes.empty() ? "" : ", ") + render::printable(node);
    table.rows.push_back(
        {wide ? one.sha256() : one.sha256().substr(0, 16),
         context.out.paint(signs ? render::Tint::Good : render::Tint::Dim,
                           state_word(one.state()) + (one.imported() ? " (imported)" : "")),
         utc_text(to_wall(one.not_before())), utc_text(to_wall(one.not_after())),
         render::printable(one.subject()), nodes.empty() ? "-" : nodes});
  }
  fmt::print("{}", render::to_text(table, context.out,
                                   render::is_terminal(1) ? render::terminal_width(1) : 0));
}

Result<int> list_authorities(const Context& context, const std::string& output) {
  const auto names = [](const v1::ListAuthoritiesResponse& answer) {
    std::string text;
    for (const auto& one : answer.authorities()) text += one.sha256() + "\n";
    return text;
  };
  return show_answer<v1::ListAuthoritiesResponse>(
      output,
      [&] { return ask(context, &Certificates::ListAuthorities, v1::ListAuthoritiesRequest()); },
      {.names = names,
       .document =
           [](const auto& answer, render::Format format) {
             return render::document_list(answer.authorities(), "Authority", format);
           },
       .people = [&](const auto& answer, bool wide) { print_authorities(context, answer, wide); }});
}

Result<int> take_step(const Context& context, const v1::ChangeAuthorityRequest& request) {
  const auto answer = ask(context, &Certificates::ChangeAuthority, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{}", next_step_text(answer->authorities()));
  return kOk;
}

// Finish is for the old CA, and abort for one that signs nothing yet; the controller has one step
// for both.
Result<int> rotate(const Context& context, const RotateOptions& options) {
  v1::ChangeAuthorityRequest request;
  request.set_force(options.force);
  if (options.step == "start") {
    request.mutable_publish();
    return take_step(context, request);
  }
  if (options.step == "sign") {
    request.mutable_sign();
    return take_step(context, request);
  }
  const auto answer = ask(context, &Certificates::ListAuthorities, v1::ListAuthoritiesRequest());
  if (!answer) return fail(Error(answer.error()));
  if (options.step.empty()) {
    fmt::print("{}", next_step_text(answer->authorities()));
    return kOk;
  }
  const bool published = authority_in(answer->authorities(), v1::AUTHORITY_STATE_NEXT) != nullptr;
  if (published != (options.step == "abort"))
    return fail(ErrorCode::Conflict,
                published ? "finishing the change of the CA: the next one does not sign yet; "
                            "'muster cert rotate sign' comes first, or 'muster cert rotate abort'"
                          : "aborting the change of the CA: no next one is published; 'muster cert "
                            "rotate' says how far it is");
  request.mutable_drop();
  return take_step(context, request);
}

Result<int> import_authority(const Context& context, const ImportCaOptions& options) {
  constexpr std::string_view kDoing = "importing a CA";
  v1::ChangeAuthorityRequest request;
  auto certificate = io::read_regular_file(options.certificate, kPemBytesMost);
  if (!certificate) return fail(std::move(certificate.error()).in(kDoing));
  auto key = pki::read_private_file(options.key, kPemBytesMost, "the CA's key", "chmod 600 it");
  if (!key) return fail(std::move(key.error()).in(kDoing));
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  if (!session->where.starts_with("unix:"))
    return fail(ErrorCode::NotAllowed,
                fmt::format("{}: the key leaves this machine to no controller over TCP ('{}'); do "
                            "it on the controller's machine, over its unix socket",
                            kDoing, session->where));
  request.mutable_publish()->set_certificate(*certificate);
  request.mutable_publish()->set_key(*key);
  const auto answer = ask(*session, &Certificates::ChangeAuthority, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{}", next_step_text(answer->authorities()));
  fmt::print(stderr,
             "{} the controller has its own copy of the key; keep '{}' where nobody else "
             "reads it, or remove it\n",
             context.err.paint(render::Tint::Dim, "note:"), render::printable(options.key));
  return kOk;
}

void add_ca_rotate(CLI::App& cert, Context& context, int& exit) {
  CLI::App* command = cert.add_subcommand(
      "rotate", "Change the cluster's CA, a step at a time; without a step, say which is next");
  auto options = std::make_shared<RotateOptions>();
  command
      ->add_option("step", options->step,
                   "start: make a next CA, and let every node trust it\n"
                   "sign: sign with it from now on; agents renew their certificates at once\n"
                   "finish: trust the old CA no more, and delete its key\n"
                   "abort: drop the next CA that signs nothing yet")
      ->type_name("STEP")
      ->check(CLI::IsMember({"start", "sign", "finish", "abort"}));
  command->add_flag("--force", options->force,
                    "take the step though nodes are not ready for it: they have to join "
                    "again");
  command->footer(
      "Only the user who runs the controller may do this, on its machine. Jobs run on meanwhile.\n"
      "'sign' waits for every connected node, 'finish' also for those that are away; 'muster cert "
      "rotate'\n"
      "names them.\n"
      "Between two steps the controller may stop or crash: the change goes on from there.\n"
      "After finish, a node that was away since start joins again ('muster node replace NAME'),\n"
      "users need a new certificate ('muster cert issue'), and older join tokens are worth "
      "nothing.\n"
      "exit codes: 0 done  11 not your controller  12 not the turn of this step, or nodes are not "
      "ready\n"
      "            13 controller unreachable  64 usage");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return rotate(chosen, *options); });
}

void add_ca_import(CLI::App& cert, Context& context, int& exit) {
  CLI::App* command = cert.add_subcommand(
      "import",
      "Publish a CA from outside as the next one: an intermediate of your own, made for "
      "muster alone");
  auto options = std::make_shared<ImportCaOptions>();
  command
      ->add_option("--certificate", options->certificate,
                   "one PEM certificate, without its chain: a CA with keyCertSign")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--key", options->key,
                   "its private key: PEM without a passphrase, ECDSA on P-256, mode 0600")
      ->type_name("FILE")
      ->required();
  command->footer(
      "Never import a company's root or a CA that signs for others, too: whoever gets this\n"
      "controller's disk could then speak for all of them, and every certificate of that CA with\n"
      "a muster:// name would count here.\n"
      "Where no certificate and no token was made yet, it signs at once. Otherwise it is like\n"
      "'muster cert rotate start', and 'muster cert rotate' says what is next.\n"
      "example:  muster cert import --certificate muster-ca.pem --key muster-ca.key\n"
      "exit codes: 0 published  10 no such file  11 not your controller, or others may read the "
      "key\n"
      "            12 another change is under way  13 controller unreachable  64 no CA that fits");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return import_authority(chosen, *options); });
}

}  // namespace

void add_authority_verbs(CLI::App& cert, Context& context, int& exit) {
  CLI::App* ca = cert.add_subcommand(
      "ca", "List the CAs of the cluster: the one that signs, a next one, an old one");
  auto output = std::make_shared<std::string>("table");
  add_output_option(*ca, *output);
  on_chosen(*ca, context, exit,
            [output](const Context& chosen) { return list_authorities(chosen, *output); });
  add_ca_rotate(cert, context, exit);
  add_ca_import(cert, context, exit);
}

}  // namespace muster::client
