// muster login | logout: the certificate by which a person calls the controller over TCP.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/local_paths.h"
#include "client/commands/login/new_login.h"
#include "client/render/text.h"
#include "common/base/duration.h"
#include "common/base/time.h"
#include "common/pki/certificate.h"
#include "common/pki/credentials.h"
#include "common/rpc/endpoint_file.h"

namespace muster::client {
namespace {

// Two clocks that are farther apart than this are worth a word.
constexpr Duration kClocksApart = std::chrono::minutes(5);

void print_login(const Context& context, const pki::Credentials& credentials,
                 const std::string& address) {
  const auto line = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, value));
  };
  line("user", render::printable(credentials.identity.name));
  line("cluster", render::printable(credentials.identity.cluster));
  line("controller", render::printable(address));
  line("until", utc_text(credentials.not_after));
}

Result<LoginFiles> files_of(const std::string& dir) {
  auto files = login_files(dir);
  if (files) return std::move(*files);
  return fail(ErrorCode::NotFound,
              "finding the files of a login: there is no home directory (HOME); give --dir");
}

Result<int> status(const Context& context, const std::string& dir) {
  const auto files = files_of(dir);
  if (!files) return fail(Error(files.error()));
  const auto endpoint = rpc::read_endpoint_file(files->endpoint());
  if (!endpoint && endpoint.error().code == ErrorCode::NotFound)
    return fail(ErrorCode::NotFound, fmt::format("nobody is logged in ('{}'); 'muster login' does",
                                                 files->dir.string()));
  if (!endpoint) return fail(Error(endpoint.error()));
  const auto credentials = pki::read_credentials(files->credentials());
  if (!credentials) return fail(Error(credentials.error()));
  print_login(context, *credentials, endpoint->address);
  if (auto counts = credentials->check_time(system_clock().now().wall); !counts)
    return fail(ErrorCode::NotAllowed,
                counts.error().message + "; 'muster login' gets another certificate");
  return kOk;
}

Result<int> log_in_and_show(const Context& context, const LoginOptions& options) {
  const auto files = files_of(options.dir);
  if (!files) return fail(Error(files.error()));
  const auto login = log_in(context, options, *files);
  if (!login) return fail(Error(login.error()));
  print_login(context, login->credentials, login->address);
  const auto note = [&](const std::string& text) {
    fmt::print(stderr, "{} {}\n", context.err.paint(render::Tint::Dim, "note:"), text);
  };
  const WallTime now = system_clock().now().wall;
  if (now - login->controller > kClocksApart || login->controller - now > kClocksApart)
    note(
        fmt::format("this machine's clock says {}, and the controller's says {}: one of them is "
                    "wrong",
                    utc_text(now), utc_text(login->controller)));
  const auto local = local_endpoint(default_local_dir());
  std::error_code ignored;
  if (context.controller.empty() && std::filesystem::exists(local, ignored))
    note(
        fmt::format("your private cluster is up, and commands without --controller go there, "
                    "until 'muster local down'; --controller {} is for this one",
                    render::printable(login->address)));
  return kOk;
}

Result<int> log_out(const std::string& dir) {
  const auto files = files_of(dir);
  if (!files) return fail(Error(files.error()));
  const auto credentials = pki::read_credentials(files->credentials());
  bool was_there = false;
  for (const auto& path : {files->endpoint(), files->credentials(), files->pending_key()}) {
    std::error_code error;
    was_there = std::filesystem::remove(path, error) || was_there;
    if (error)
      return fail(ErrorCode::Io,
                  fmt::format("logging out: removing '{}': {}", path.string(), error.message()));
  }
  std::error_code ignored;
  std::filesystem::remove(files->dir, ignored);  // if nothing else is in it
  fmt::print("{}\n", was_there ? "logged out" : "nobody was logged in");
  if (!credentials || !credentials->check_time(system_clock().now().wall)) return kOk;
  const auto certificate = pki::Certificate::from_pem(credentials->certificate_pem);
  if (certificate)
    fmt::print(stderr,
               "note: a copy of the certificate would count until {}; `muster cert revoke --serial "
               "{} --why TEXT` on the controller's machine ends it\n",
               utc_text(credentials->not_after), certificate->serial());
  return kOk;
}

void add_dir_option(CLI::App& command, std::string& into) {
  command
      .add_option("--dir", into,
                  "where the files are, if not in ~/.config/muster; other verbs look there with "
                  "MUSTER_LOGIN_DIR")
      ->envname("MUSTER_LOGIN_DIR")
      ->type_name("DIR");
}

}  // namespace

void add_login(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "login", "Get a certificate of your own, and let the other commands use it");
  struct Options : LoginOptions {
    bool status = false;
  };
  auto options = std::make_shared<Options>();
  command->add_flag("--status", options->status, "only show who is logged in, and until when");
  command
      ->add_option("--token-file", options->token_file,
                   "a personal token that an admin made for you ('muster token create --user'); "
                   "-: from standard input")
      ->type_name("FILE");
  command
      ->add_option("--enrol", options->enrol,
                   "with a token: the controller's enrolment port (default: that of your last "
                   "login)")
      ->type_name("HOST:PORT");
  command
      ->add_option("--socket", options->socket,
                   "without a token: the controller's socket for users, on its own machine "
                   "(default: /run/muster/login.sock, or that of --controller FILE)")
      ->type_name("PATH");
  command->add_option("--lifetime", options->lifetime, "how long the certificate counts, 1h to 31d")
      ->type_name("TIME")
      ->capture_default_str();
  add_dir_option(*command, options->dir);
  command->footer(
      "On the controller's machine you need nothing: the machine says who you are. Elsewhere an "
      "admin gives you a token.\n"
      "Afterwards every command finds the controller by itself. --controller, --credentials and "
      "their variables win over\n"
      "that, and so does a private cluster that is up. With 'muster --controller HOST:PORT login' "
      "that address is kept.\n"
      "example:  muster login\n"
      "          muster login --token-file ann.token --enrol head:7071\n"
      "          muster login --status\n"
      "exit codes: 0 logged in  10 no socket, or nobody is logged in  11 refused, ended, or a "
      "wrong "
      "clock\n"
      "            13 controller unreachable  64 usage  70 the files cannot be written");
  on_chosen(*command, context, exit, [options](const Context& chosen) {
    return options->status ? status(chosen, options->dir) : log_in_and_show(chosen, *options);
  });
}

void add_logout(CLI::App& app, Context& context, int& exit) {
  CLI::App* command =
      app.add_subcommand("logout", "Remove the key and the certificate of 'muster login'");
  auto dir = std::make_shared<std::string>();
  add_dir_option(*command, *dir);
  command->footer(
      "The certificate itself counts until its end, for whoever has a copy: 'muster cert revoke' "
      "ends it.\n"
      "exit codes: 0 nothing of a login is left  70 a file cannot be removed");
  on_chosen(*command, context, exit, [dir](const Context&) { return log_out(*dir); });
}

}  // namespace muster::client
