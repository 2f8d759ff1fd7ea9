#include "controller/enrol/port.h"

#include <pthread.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "common/base/mutex.h"
#include "common/enrol/address.h"
#include "common/enrol/tls.h"
#include "common/name_service/hosts.h"
#include "controller/enrol/connection.h"
#include "controller/listen/socket.h"

namespace muster::controller {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using SystemError = boost::system::error_code;

// After an accept that failed: until then a descriptor may be free.
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);

tcp::endpoint endpoint_of(const sockaddr_storage& address) {
  tcp::endpoint endpoint;
  const socklen_t size = name_service::size_of(address);
  endpoint.resize(size);
  std::memcpy(endpoint.data(), &address, size);
  return endpoint;
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(endpoint.port());
}

// An IPv4 address that came over a socket of both families.
asio::ip::address plain(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

}  // namespace

// Everything but post() and the first lines of stop() runs on `thread`.
struct EnrolPort::Impl : std::enable_shared_from_this<Impl> {
  Impl(std::shared_ptr<EnrolTls> tls, EnrolHooks hooks, const Clock& clock, EnrolLimits limits)
      : work(asio::make_work_guard(context)),
        acceptor(context),
        again(context),
        count(limits),
        trouble(clock),
        shared{.tls = std::move(tls),
               .hooks = std::move(hooks),
               .clock = clock,
               .limits = limits,
               .trouble = trouble,
               .post = {},
               .ended = [this](const std::shared_ptr<EnrolConnection>& connection) {
                 count.leave(connection->from());
                 connections.erase(connection);
               }} {}

  Result<std::string> listen(const sockaddr_storage& address) {
    auto socket = listen_tcp(address);
    if (!socket) return fail(std::move(socket.error()));
    tcp::endpoint bound;
    socklen_t size = static_cast<socklen_t>(bound.capacity());
    if (::getsockname(socket->fd.get(), bound.data(), &size) != 0)
      return fail_errno("reading a socket's address", errno);
    bound.resize(size);
    SystemError error;
    acceptor.assign(bound.protocol(), socket->fd.get(), error);
    if (error) return fail(ErrorCode::Io, error.message());
    socket->fd.release();
    // The address as it was asked for: of 0.0.0.0 the socket itself may be ::, for both families.
    return text_of({endpoint_of(address).address(), bound.port()});
  }

  void begin() {
    shared.post = [weak = weak_from_this()](std::move_only_function<void()> task) {
      if (const auto self = weak.lock()) self->post(std::move(task));
    };
    accept();
    thread = std::thread([this] {
      pthread_setname_np(pthread_self(), "enrol");
      context.run();
    });
  }

  void accept() {
    acceptor.async_accept([this](const SystemError& error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        serve(std::move(socket));
        return accept();
      }
      // Others are of one connection, which is gone.
      if (error == asio::error::connection_aborted) return accept();
      trouble.note(EnrolCause::Accept, error.message());
      again.expires_after(kAcceptAgain);
      again.async_wait([this](const SystemError& stopped) {
        if (!stopped) accept();
      });
    });
  }

  void serve(tcp::socket socket) {
    SystemError error;
    const asio::ip::address from = plain(socket.remote_endpoint(error).address());
    if (error) return;                              // it is gone already
    socket.set_option(tcp::no_delay(true), error);  // best effort
    switch (count.enter(from)) {
      case ConnectionCount::Room::Full: return trouble.note(EnrolCause::Full, from.to_string());
      case ConnectionCount::Room::AddressFull:
        return trouble.note(EnrolCause::AddressFull, from.to_string());
      case ConnectionCount::Room::There: break;
    }
    std::shared_ptr<EnrolConnection> connection;
    try {
      connection = std::make_shared<EnrolConnection>(shared, std::move(socket), from);
    } catch (const std::exception& failed) {  // libssl has no memory
      count.leave(from);
      return trouble.note(EnrolCause::Accept, failed.what());
    }
    connections.insert(connection);
    connection->start();
  }

  // Any thread.
  void post(std::move_only_function<void()> task) {
    const MutexLock lock(mutex);
    if (!is_open) return;
    asio::post(context, std::move(task));
  }

  void stop() {
    {
      const MutexLock lock(mutex);
      if (!std::exchange(is_open, false)) return;
    }
    // The thread ends when nothing is left to do.
    asio::post(context, [this] {
      SystemError ignored;
      acceptor.close(ignored);
      again.cancel();
      for (const auto& connection : std::set(connections)) connection->close();
      work.reset();
    });
    thread.join();
  }

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work;
  tcp::acceptor acceptor;
  asio::steady_timer again;
  ConnectionCount count;
  EnrolTrouble trouble;
  EnrolConnection::Shared shared;
  std::set<std::shared_ptr<EnrolConnection>> connections;
  std::thread thread;
  Mutex mutex;
  bool is_open MUSTER_GUARDED_BY(mutex) = true;
};

Result<std::unique_ptr<EnrolPort>> EnrolPort::start(const std::string& address,
                                                    const pki::Credentials& own, EnrolHooks hooks,
                                                    const Clock& clock, EnrolLimits limits) {
  const std::string doing = "listening for nodes that join at '" + address + "'";
  const auto addresses = enrol::socket_addresses(address, 0);
  if (!addresses) return fail(Error(addresses.error()).in(doing));
  auto tls = enrol::ServerTls::make({own});
  if (!tls) return fail(std::move(tls.error()).in(doing));
  auto impl = std::make_shared<Impl>(std::make_shared<EnrolTls>(std::move(*tls)), std::move(hooks),
                                     clock, limits);
  auto bound = impl->listen(addresses->front());
  if (!bound) return fail(std::move(bound.error()).in(doing));
  impl->begin();
  return std::unique_ptr<EnrolPort>(new EnrolPort(std::move(impl), std::move(*bound)));
}

Result<void> EnrolPort::replace(const std::vector<pki::Credentials>& own) {
  auto tls = enrol::ServerTls::make(own);
  if (!tls) return fail(std::move(tls.error()).in("changing what the enrolment port shows"));
  impl_->post([impl = impl_, made = std::make_shared<EnrolTls>(std::move(*tls))]() mutable {
    impl->shared.tls = std::move(made);
  });
  return {};
}

EnrolPort::~EnrolPort() { stop(); }

void EnrolPort::stop() { impl_->stop(); }

}  // namespace muster::controller
