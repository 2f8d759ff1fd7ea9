// muster cert issue | show | ls | revoke | ca | rotate | import: certificates, by which agents and
// users call the controller over TCP, and the CA that signs them.
#include <fmt/format.h>

#include <filesystem>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/cert/authority.h"
#include "client/commands/cert/issued.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/pki/credentials.h"
#include "common/pki/key.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct IssueOptions {
  std::string node, user, file, lifetime;
};

Result<void> print_credentials(const Context& context, const pki::Credentials& credentials) {
  const auto key = pki::Key::from_pem(credentials.key_pem);
  if (!key) return fail(Error(key.error()));
  const auto line = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, value));
  };
  line("for", pki::text_of(credentials.identity));
  line("cluster", credentials.identity.cluster);
  line("from", utc_text(credentials.not_before));
  line("until", utc_text(credentials.not_after));
  line("key", key->public_digest());
  return {};
}

// The key is made here, and only its public half goes to the controller.
Result<int> issue(const Context& context, const IssueOptions& options) {
  if (options.node.empty() == options.user.empty())
    return fail(ErrorCode::InvalidArgument, "issuing a certificate: give one of --node and --user");
  const std::string lifetime = !options.lifetime.empty() ? options.lifetime
                               : options.node.empty()    ? "30d"
                                                         : "365d";
  auto duration = parse_timeout(lifetime, "--lifetime");
  if (!duration) return fail(std::move(duration.error()));
  if (options.file.empty() || options.file == "-")
    return fail(ErrorCode::InvalidArgument,
                fmt::format("issuing a certificate: -o '{}' names no file; a private key is not "
                            "printed, so give the path of a new file",
                            options.file));
  const std::filesystem::path file = options.file;
  if (auto creatable = pki::check_creatable(file, "credentials"); !creatable)
    return fail(std::move(creatable.error()));
  const auto key = pki::Key::generate();
  if (!key) return fail(Error(key.error()));
  auto public_key = key->public_pem();
  if (!public_key) return fail(std::move(public_key.error()));
  v1::IssueCertificateRequest request;
  request.set_public_key(*public_key);
  if (options.node.empty()) {
    request.set_user(options.user);
  } else {
    request.set_node(options.node);
  }
  *request.mutable_lifetime() = to_proto(*duration);
  auto answer = ask(context, &Certificates::IssueCertificate, request);
  if (!answer) return fail(std::move(answer.error()));
  auto private_key = key->private_pem();
  if (!private_key) return fail(std::move(private_key.error()));
  const auto credentials =
      pki::parse_credentials(*private_key + answer->certificate() + answer->ca());
  if (!credentials) return fail(Error(credentials.error()).in("reading the controller's answer"));
  if (auto written = pki::create_credentials(file, *credentials); !written)
    return fail(std::move(written.error()));
  if (auto shown = print_credentials(context, *credentials); !shown)
    return fail(std::move(shown.error()));
  fmt::print(stderr, "{} it holds a private key: carry '{}' over SSH, and keep its mode 0600\n",
             context.err.paint(render::Tint::Dim, "note:"), file.string());
  return kOk;
}

Result<int> show_file(const Context& context, const std::string& file) {
  const auto credentials = pki::read_credentials(file);
  if (!credentials) return fail(Error(credentials.error()));
  if (auto shown = print_credentials(context, *credentials); !shown)
    return fail(std::move(shown.error()));
  if (auto valid = credentials->check_time(system_clock().now().wall); !valid)
    return fail(std::move(valid.error()));
  return kOk;
}

}  // namespace

void add_cert(CLI::App& app, Context& context, int& exit) {
  CLI::App* command =
      app.add_subcommand("cert", "Certificates of nodes and users, for calls over TCP");
  command->require_subcommand(1);
  CLI::App* making = command->add_subcommand(
      "issue", "Make a key, and a certificate for it, in one file of mode 0600");
  auto options = std::make_shared<IssueOptions>();
  making->add_option("--node", options->node, "for the agent of this node: it speaks for no other")
      ->type_name("NAME");
  making->add_option("--user", options->user, "for the client of this user")->type_name("NAME");
  making->add_option("-o,--output", options->file, "the file to write; it must not exist")
      ->type_name("FILE")
      ->required();
  making
      ->add_option("--lifetime", options->lifetime,
                   "how long the certificate counts, 1h to 3650d (default: 365d of a node, 30d "
                   "of a user)")
      ->type_name("TIME");
  making->footer(
      "Only the user who runs the controller may do this, on its machine.\n"
      "example:  muster cert issue --node gpu-17 -o gpu-17.pem\n"
      "          scp gpu-17.pem gpu-17:/etc/muster/credentials.pem    # and there:\n"
      "          muster-agent --controller HOST:PORT --credentials /etc/muster/credentials.pem\n"
      "exit codes: 0 written  10 no such directory  11 not your controller, or not your directory\n"
      "            12 the file is there  13 controller unreachable  64 usage  70 the file cannot "
      "be written");
  on_chosen(*making, context, exit,
            [options](const Context& chosen) { return issue(chosen, *options); });
  CLI::App* showing = command->add_subcommand("show", "Show whose certificate a file holds");
  auto file = std::make_shared<std::string>();
  showing->add_option("file", *file, "a file that 'muster cert issue' wrote")
      ->type_name("FILE")
      ->required();
  showing->footer(
      "exit codes: 0 it counts now  11 it does not, or others may read the file  10 no such file");
  on_chosen(*showing, context, exit,
            [file](const Context& chosen) { return show_file(chosen, *file); });
  add_issued_verbs(*command, context, exit);
  add_authority_verbs(*command, context, exit);
}

}  // namespace muster::client
