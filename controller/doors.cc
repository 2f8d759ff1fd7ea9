#include "controller/doors.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "common/io/descriptor_limit.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "common/rpc/endpoint_file.h"
#include "controller/access_setup.h"

namespace muster::controller {
namespace {

std::shared_ptr<grpc::ServerCredentials> tcp_credentials(
    const std::shared_ptr<rpc::LiveTls>& tls, const DoorNeeds& needs,
    const std::shared_ptr<Connections>& connections) {
  if (tls == nullptr) return nullptr;
  return rpc::tls_credentials(
      tls, needs.clock,
      {.may_call = [&access = needs.access](
                       const pki::Identity& caller,
                       std::string_view method) { return access.may_call(caller, method); },
       .begins =
           [connections, &clock = needs.clock](rpc::ConnectionId connection,
                                               const pki::Identity& caller) {
             return connections->begin(connection, connections->owner(caller), clock.now().boot);
           },
       .not_revoked =
           [&revocations = needs.revocations](const pki::Identity& caller,
                                              const pki::Certificate& certificate) {
             return revocations.check(caller, certificate);
           },
       .on_refused = [&refusals =
                          needs.refusals](const Error& error) { refusals.note(error.message); }});
}

std::vector<std::string> tcp_addresses(const Server& server) {
  std::vector<std::string> addresses;
  for (const std::string& address : server.bound()) {
    if (!rpc::is_unix(address)) addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

Result<std::unique_ptr<Doors>> Doors::make(const DoorNeeds& needs) {
  const auto now = needs.authorities.now();
  std::shared_ptr<rpc::LiveTls> tls;
  if (std::ranges::all_of(needs.config.listen, rpc::is_unix)) {
    if (now == nullptr)
      log::warn("no certificates can be issued", {{"why", needs.authorities.why().message}});
  } else if (now == nullptr) {
    return fail(Error(needs.authorities.why()));
  } else {
    tls = std::make_shared<rpc::LiveTls>(now->own.front());
  }
  return std::unique_ptr<Doors>(new Doors(needs, std::move(tls)));
}

Doors::Doors(const DoorNeeds& needs, std::shared_ptr<rpc::LiveTls> tls)
    : needs_(needs),
      tls_(std::move(tls)),
      enrolments_(needs.shell, needs.authorities, needs.clock) {}

Result<void> Doors::open(const std::vector<grpc::Service*>& services, const ClusterId& cluster) {
  auto done = open_server(services);
  if (done) done = open_enrol_port();
  opened_.set_value();
  if (done) done = open_login_socket();
  if (done) done = write_endpoint(cluster);
  if (done) log_addresses();
  return done;
}

Result<void> Doors::open_server(const std::vector<grpc::Service*>& services) {
  auto connections = Server::make_connections();
  auto server =
      Server::start(needs_.config.listen, services, tcp_credentials(tls_, needs_, connections),
                    &needs_.revocations, connections);
  if (!server) return fail(std::move(server.error()));
  server_ = *std::move(server);
  logins_.emplace(needs_.shell, needs_.authorities, needs_.clock, tcp_addresses(*server_));
  return {};
}

Result<void> Doors::open_enrol_port() {
  if (needs_.config.enrol.empty()) return {};
  const auto now = needs_.authorities.now();
  if (now == nullptr) return fail(Error(needs_.authorities.why()));
  auto port = EnrolPort::start(
      needs_.config.enrol, now->own.front(),
      {.join = [this](JoinAsk ask,
                      Enrolments::Done done) { enrolments_.join(std::move(ask), std::move(done)); },
       .renew = [this](
                    RenewAsk ask,
                    Enrolments::Done done) { enrolments_.renew(std::move(ask), std::move(done)); },
       .login = [this](LoginAsk ask,
                       Enrolments::Done done) { logins_->login(std::move(ask), std::move(done)); }},
      needs_.clock, enrol_limits_for(io::descriptor_limit()));
  if (!port) return fail(std::move(port.error()));
  enrol_port_ = *std::move(port);
  return enrol_port_->replace(now->own);
}

Result<void> Doors::open_login_socket() {
  if (needs_.config.login_socket.empty()) return {};
  auto socket = LoginSocket::start(
      {.path = needs_.config.login_socket, .own = {.name = own_user(), .uid = ::geteuid()}},
      [this](SocketLoginAsk ask, Enrolments::Done done) {
        logins_->login(std::move(ask), std::move(done));
      },
      needs_.clock);
  if (!socket) return fail(std::move(socket.error()));
  login_socket_ = *std::move(socket);
  return {};
}

Result<void> Doors::write_endpoint(const ClusterId& cluster) const {
  rpc::EndpointFile file{.address = {},
                         .tcp = tcp_addresses(*server_),
                         .enrol = enrol_port_ == nullptr ? std::string() : enrol_port_->bound(),
                         .cluster_id = cluster.str(),
                         .pid = static_cast<std::uint64_t>(::getpid()),
                         .login = needs_.config.login_socket};
  const auto socket = std::ranges::find_if(server_->bound(), rpc::is_unix);
  if (socket != server_->bound().end()) file.address = *socket;
  return rpc::write_endpoint_file(needs_.config.endpoint_file, file);
}

void Doors::log_addresses() const {
  for (const std::string& address : server_->bound())
    log::info("listening", {{"address", address}});
  if (enrol_port_) log::info("listening for nodes that join", {{"address", enrol_port_->bound()}});
  if (login_socket_)
    log::info("listening for users who log in", {{"socket", login_socket_->path()}});
}

void Doors::show(const AuthoritiesNow& now) {
  are_open_.wait();
  if (tls_) tls_->replace(now.own.front());
  if (enrol_port_ == nullptr) return;
  if (auto shown = enrol_port_->replace(now.own); !shown) log::error(shown.error().message);
}

void Doors::stop_enrolment() {
  if (login_socket_) login_socket_->stop();
  if (enrol_port_) enrol_port_->stop();
}

void Doors::shut_down() {
  if (server_) server_->shut_down();
}

}  // namespace muster::controller
