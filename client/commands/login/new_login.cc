#include "client/commands/login/new_login.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

#include "client/commands/call/options.h"
#include "client/commands/login/controller_address.h"
#include "common/enrol/client.h"
#include "common/enrol/login.h"
#include "common/enrol/pending_key.h"
#include "common/enrol/socket_place.h"
#include "common/enrol/token.h"
#include "common/io/file.h"
#include "common/name_service/users.h"
#include "common/rpc/channel.h"
#include "common/rpc/endpoint_file.h"

namespace muster::client {
namespace {

constexpr std::string_view kLoggingIn = "logging in";

// --controller as HOST:PORT.
bool is_tcp_address(const std::string& controller) {
  return !controller.empty() && !controller.contains('/') && controller.contains(':');
}

// What came must be whole, for this key, and of the user whom the controller names.
Result<pki::Credentials> credentials_of(const enrol::Issued& issued, const pki::Key& key) {
  const std::string doing = fmt::format("{}: reading the controller's answer", kLoggingIn);
  const auto key_pem = key.private_pem();
  if (!key_pem) return fail(Error(key_pem.error()).in(doing));
  auto made = pki::parse_credentials(*key_pem + issued.certificate_pem + issued.ca_pem);
  if (!made) return fail(ErrorCode::InvalidArgument, doing + ": " + made.error().message);
  if (made->identity.role != pki::Role::User || made->identity.name != issued.user)
    return fail(ErrorCode::InvalidArgument,
                doing + ": the certificate is of " + pki::text_of(made->identity));
  return made;
}

// The connection has proven a CA of this digest. During a change of the CA another one may come
// with it.
Result<void> check_ca(const pki::Credentials& made, const std::string& digest) {
  const auto digests = made.ca_digests();
  if (!digests) return fail(Error(digests.error()).in(kLoggingIn));
  if (std::ranges::find(*digests, digest) != digests->end()) return {};
  return fail(
      ErrorCode::InvalidArgument,
      fmt::format("{}: the CA that came with the certificate is not the token's", kLoggingIn));
}

Result<void> check_clocks(const pki::Credentials& made, WallTime controller) {
  const WallTime now = system_clock().now().wall;
  if (made.check_time(now)) return {};
  return fail(ErrorCode::NotAllowed,
              fmt::format("{}: the new certificate counts from {} to {}, and this machine's clock "
                          "says {}; the controller's said {}: set the one that is wrong, and log "
                          "in again",
                          kLoggingIn, utc_text(made.not_before), utc_text(made.not_after),
                          utc_text(now), utc_text(controller)));
}

// Errors: a file that --controller names and that cannot be read.
Result<std::string> socket_path_of(const Context& context, const LoginOptions& options) {
  if (!options.socket.empty()) {
    std::error_code ignored;
    return std::filesystem::absolute(options.socket, ignored).lexically_normal().string();
  }
  if (context.controller.empty() || is_tcp_address(context.controller) ||
      rpc::is_unix(context.controller))
    return enrol::kLoginSocket;
  const auto file = rpc::read_endpoint_file(context.controller);
  if (!file) return fail(Error(file.error()).in(kLoggingIn));
  if (file->login.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("{}: the controller of '{}' has no socket where users log in; the "
                            "person who runs it starts it with --login-socket",
                            kLoggingIn, context.controller));
  return file->login;
}

Result<enrol::Issued> ask_at_socket(const std::string& path, const pki::Key& key,
                                    Duration lifetime) {
  auto issued = enrol::login_at_socket(path, key, lifetime);
  if (!issued && issued.error().code == ErrorCode::NotFound)
    return fail(ErrorCode::NotFound,
                fmt::format("{}; log in on the controller's machine, or here with a token of an "
                            "admin: muster login --token-file FILE --enrol HOST:PORT",
                            issued.error().message));
  return issued;
}

// The key of the login that is there, if it is whole: only so many keys of a user count at a time,
// and a renewal needs none. At the port a token has a use for each key, so a login there makes one.
std::optional<pki::Key> key_of_last_login(const LoginFiles& files) {
  const auto last = pki::read_credentials(files.credentials());
  const auto own = name_service::find_user(::geteuid());
  if (!last || !own || last->identity.role != pki::Role::User || last->identity.name != own->name)
    return std::nullopt;
  auto key = pki::Key::from_pem(last->key_pem);
  if (!key) return std::nullopt;
  return std::move(*key);
}

// HOST:PORT of the enrolment port.
Result<std::string> enrol_of(const LoginOptions& options, const LoginFiles& files) {
  if (!options.enrol.empty()) return options.enrol;
  const auto last = rpc::read_endpoint_file(files.endpoint());
  if (last && !last->enrol.empty()) return last->enrol;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("{} with a token: give --enrol HOST:PORT, where the controller's "
                          "enrolment port is",
                          kLoggingIn));
}

Result<void> write_login(const LoginFiles& files, const Login& login,
                         const rpc::EndpointFile& endpoint) {
  if (auto kept = pki::replace_credentials(files.credentials(), login.credentials); !kept)
    return fail(std::move(kept.error()).in(kLoggingIn));
  if (auto kept = rpc::write_endpoint_file(files.endpoint(), endpoint); !kept)
    return fail(std::move(kept.error()).in(kLoggingIn));
  enrol::remove_pending_key(files.pending_key());
  return {};
}

// What is sound of an answer, and not written yet.
Result<Login> login_of(const Context& context, const enrol::Issued& issued, const pki::Key& key,
                       const std::string& host) {
  auto credentials = credentials_of(issued, key);
  if (!credentials) return fail(std::move(credentials.error()));
  if (auto usable = check_clocks(*credentials, issued.time); !usable)
    return fail(std::move(usable.error()));
  Login login{.credentials = std::move(*credentials),
              .address = is_tcp_address(context.controller)
                             ? context.controller
                             : controller_address(issued.addresses, host),
              .controller = issued.time};
  if (auto sound = rpc::check_address(login.address); !sound || rpc::is_unix(login.address))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: the controller does not say where it takes calls over TCP; give "
                            "--controller HOST:PORT",
                            kLoggingIn));
  return login;
}

}  // namespace

Result<Login> log_in(const Context& context, const LoginOptions& options, const LoginFiles& files) {
  const auto lifetime = parse_timeout(options.lifetime, "--lifetime");
  if (!lifetime) return fail(Error(lifetime.error()));
  if (*lifetime < enrol::kLoginLifetimeLeast || *lifetime > enrol::kLoginLifetimeMost)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: --lifetime must be 1h to 31d", kLoggingIn));
  if (auto made = io::make_dirs(files.dir, 0700); !made)
    return fail(std::move(made.error()).in(kLoggingIn));
  std::string enrol_address, socket, host;
  Result<enrol::Issued> issued = fail(ErrorCode::Internal, "nothing was asked");
  Result<pki::Key> key = fail(ErrorCode::Internal, "no key was made");
  if (options.token_file.empty()) {
    auto path = socket_path_of(context, options);
    if (!path) return fail(std::move(path.error()));
    socket = std::move(*path);
    if (auto last = key_of_last_login(files)) {
      key = std::move(*last);
      issued = ask_at_socket(socket, *key, *lifetime);
    }
    // The last key may have been revoked, or got as many certificates as a key gets in a day.
    if (!issued && (!key || issued.error().code == ErrorCode::NotAllowed ||
                    issued.error().code == ErrorCode::ResourceExhausted)) {
      key = pki::Key::generate();
      if (!key) return fail(Error(key.error()).in(kLoggingIn));
      issued = ask_at_socket(socket, *key, *lifetime);
    }
  } else {
    auto address = enrol_of(options, files);
    if (!address) return fail(std::move(address.error()));
    enrol_address = std::move(*address);
    host = host_of(enrol_address);
    const auto token = enrol::read_token(options.token_file, enrol::TokenKind::Login);
    if (!token) return fail(Error(token.error()).in(kLoggingIn));
    key = enrol::pending_key(files.pending_key(), "'muster login'");
    if (!key) return fail(Error(key.error()).in(kLoggingIn));
    std::signal(SIGPIPE, SIG_IGN);  // libssl writes to a socket that may be closed
    issued = enrol::login({.address = enrol_address}, *token, *key, *lifetime);
    // For the user it is one: not this controller, not with this token.
    if (!issued && issued.error().code == ErrorCode::Unsupported)
      return fail(ErrorCode::NotAllowed, issued.error().message);
    // The next token must not be asked for with a key that is refused, for instance a revoked one.
    if (!issued && issued.error().code == ErrorCode::NotAllowed)
      enrol::remove_pending_key(files.pending_key());
    if (issued) {
      auto made = credentials_of(*issued, *key);
      if (!made) return fail(std::move(made.error()));
      if (auto sound = check_ca(*made, token->ca_digest); !sound)
        return fail(std::move(sound.error()));
    }
  }
  if (!issued) return fail(std::move(issued.error()));
  auto login = login_of(context, *issued, *key, host);
  if (!login) return login;
  if (auto kept = write_login(files, *login,
                              {.address = login->address,
                               .tcp = issued->addresses,
                               .enrol = enrol_address,
                               .cluster_id = login->credentials.identity.cluster,
                               .pid = 0,
                               .login = socket});
      !kept)
    return fail(std::move(kept.error()));
  return login;
}

}  // namespace muster::client
