#include "deploy/ssh/libssh2_connect.h"

#include <algorithm>
#include <array>

#include "deploy/ssh/host_check.h"
#include "deploy/ssh/tcp.h"
#include "deploy/ssh/tunnel.h"

namespace muster::ssh {
namespace {

// No SHA-1 and no CBC, which libssh2 would offer, too.
constexpr const char* kKeyExchanges =
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
    "ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256,"
    "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512";
constexpr const char* kCiphers = "aes256-ctr,aes192-ctr,aes128-ctr";
constexpr const char* kMacs = "hmac-sha2-256,hmac-sha2-512";
constexpr std::array<std::string_view, 4> kHostKeyTypes{
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"};

bool usable(std::string_view type) {
  return std::ranges::find(kHostKeyTypes, type) != kHostKeyTypes.end();
}

// The recorded types first: a host with several keys must show one that is recorded.
std::string host_key_order(const std::vector<std::string>& recorded) {
  std::string order;
  const auto add = [&order](std::string_view type) {
    order += (order.empty() ? "" : ",") + std::string(type);
  };
  for (const std::string& type : recorded)
    if (usable(type)) add(type);
  for (const std::string_view type : kHostKeyTypes)
    if (std::ranges::find(recorded, type) == recorded.end()) add(type);
  return order;
}

bool prefer(LIBSSH2_SESSION* session, const std::string& host_keys) {
  const auto set = [session](int method, const char* names) {
    return libssh2_session_method_pref(session, method, names) == 0;
  };
  return set(LIBSSH2_METHOD_KEX, kKeyExchanges) && set(LIBSSH2_METHOD_HOSTKEY, host_keys.c_str()) &&
         set(LIBSSH2_METHOD_CRYPT_CS, kCiphers) && set(LIBSSH2_METHOD_CRYPT_SC, kCiphers) &&
         set(LIBSSH2_METHOD_MAC_CS, kMacs) && set(LIBSSH2_METHOD_MAC_SC, kMacs);
}

class Connecting {
 public:
  Connecting(const Libssh2Request& request, Prompts& prompts)
      : request_(request), prompts_(prompts), deadline_(request.deadline) {}

  Libssh2Outcome run() {
    for (const Hop& hop : request_.route.hops) {
      if (!hop.proxy_command.empty()) {
        openssh("libssh2 runs no ProxyCommand",
                {ErrorCode::Unsupported, "ssh_config has a ProxyCommand for '" + hop.alias +
                                             "', and only the program `ssh` "
                                             "runs one; install openssh-client"});
        return std::move(outcome_);
      }
      if (!hop.key_setting.empty()) {
        openssh(
            "libssh2 does not know ssh_config's " + hop.key_setting,
            {ErrorCode::Unsupported, "ssh_config has " + hop.key_setting + " for '" + hop.alias +
                                         "', and only the program `ssh` obeys it; install "
                                         "openssh-client"});
        return std::move(outcome_);
      }
    }
    for (const Hop& hop : request_.route.hops) {
      if (step(hop)) continue;
      outcome_.wire.reset();
      // A jump host's error names it. The target is named by the caller.
      if (&hop != &target() && outcome_.error)
        outcome_.error = std::move(*outcome_.error).in("at the jump host '" + hop.text() + "'");
      break;
    }
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] const Hop& target() const { return request_.route.hops.back(); }

  bool failed(Error error) {
    outcome_.error = std::move(error);
    return false;
  }
  bool openssh(std::string why, Error error) {
    outcome_.openssh_may = std::move(why);
    return failed(std::move(error));
  }

  bool step(const Hop& hop) {
    auto check = HostCheck::open(hop, request_.accept_new);
    if (!check) return failed(std::move(check).error());
    const auto recorded = check->recorded_types();
    if (!recorded.empty() && std::ranges::none_of(recorded, usable))
      return openssh("the recorded key of '" + hop.alias + "' is of type " + recorded.front() +
                         ", which libssh2 cannot use",
                     {ErrorCode::Unsupported, "the recorded key is of type " + recorded.front() +
                                                  ", which only the program `ssh` can use; install "
                                                  "openssh-client"});
    if (!open_wire(hop)) return false;
    Wire& wire = *outcome_.wire;
    if (!prefer(wire.session(), host_key_order(recorded)))
      return failed({ErrorCode::Internal, "libssh2 has none of the algorithms that muster allows"});
    const auto rc =
        wire.finish([&] { return libssh2_session_handshake(wire.session(), wire.fd()); });
    if (!rc) return failed(Error(rc.error()).in("waiting for the SSH handshake"));
    if (*rc != 0) return handshake_failed(*rc);
    std::size_t size = 0;
    const char* key = libssh2_session_hostkey(wire.session(), &size, nullptr);
    auto known = check->check({key, key == nullptr ? 0 : size});
    outcome_.notes.insert(outcome_.notes.end(), check->notes().begin(), check->notes().end());
    if (!known) return failed(std::move(known).error());
    return authenticate(hop);
  }

  bool open_wire(const Hop& hop) {
    TunnelEnd end;
    if (outcome_.wire) {
      auto opened = open_tunnel(std::move(outcome_.wire), before_, hop.host_name, hop.port);
      if (!opened) return failed(std::move(opened).error());
      end = std::move(*opened);
    } else {
      auto socket = connect_tcp(hop.host_name, hop.port, deadline_, hop.alive);
      if (!socket) return failed(std::move(socket).error());
      end.socket = std::move(*socket);
    }
    auto wire = Wire::create(std::move(end.socket), std::move(end.tunnel));
    if (!wire) return failed(std::move(wire).error());
    outcome_.wire = std::move(*wire);
    outcome_.wire->set_deadline(deadline_);
    outcome_.wire->set_alive(hop.alive);
    before_ = hop.text();
    return true;
  }

  bool handshake_failed(int rc) {
    const Wire& wire = *outcome_.wire;
    if (wire.late()) return failed(wire.failure(rc).in("waiting for the SSH handshake"));
    if (rc == LIBSSH2_ERROR_BANNER_RECV || libssh2_session_banner_get(wire.session()) == nullptr)
      return failed({ErrorCode::Unreachable,
                     "the other end closed the connection before it spoke SSH; is this sshd's "
                     "port, and does sshd accept more connections (MaxStartups)?"});
    return openssh("libssh2 and the host have no common algorithm",
                   {ErrorCode::Unreachable,
                    "libssh2 and the host have no common algorithm (" + wire.last_text() +
                        "); install openssh-client here, whose `ssh` has newer ones"});
  }

  bool authenticate(const Hop& hop) {
    Wire& wire = *outcome_.wire;
    AuthReport report;
    const auto at = static_cast<std::size_t>(&hop - request_.route.hops.data());
    const bool password = at < request_.passwords.size() && request_.passwords[at].has_value();
    auto done = password ? authenticate_by_password(wire, hop, *request_.passwords[at], report)
                         : authenticate_by_keys(wire, hop, prompts_, report);
    deadline_ = wire.deadline();  // a person may have taken time
    if (!done) return failed(std::move(done).error());
    if (*done) return true;
    if (report.accepts_password()) outcome_.needs_password = at;
    Error refused{ErrorCode::NotAllowed, report.text()};
    if (report.unusable.empty()) return failed(std::move(refused));
    return openssh("libssh2 cannot use the " + report.unusable.front(), std::move(refused));
  }

  const Libssh2Request& request_;
  Prompts& prompts_;
  Deadline deadline_;
  std::string before_;  // the hop whose wire is open
  Libssh2Outcome outcome_;
};

}  // namespace

Libssh2Outcome connect_by_libssh2(const Libssh2Request& request, Prompts& prompts) {
  return Connecting(request, prompts).run();
}

}  // namespace muster::ssh
