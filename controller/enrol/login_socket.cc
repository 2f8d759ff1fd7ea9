#include "controller/enrol/login_socket.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "common/enrol/socket_place.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "controller/enrol/answer.h"
#include "controller/enrol/login_connection.h"
#include "controller/listen/socket.h"

namespace muster::controller {
namespace {

using boost::asio::local::stream_protocol;
using AcceptError = boost::system::error_code;

// After an accept that failed: until then a descriptor may be free.
constexpr auto kSocketAcceptAgain = std::chrono::milliseconds(100);

struct Place {
  io::UniqueFd lock, listening;
};

// The socket is everybody's only when it listens, in a directory where nobody else can replace it.
Result<Place> open_place(const std::string& path) {
  const std::filesystem::path file(path);
  if (file.is_absolute()) {
    if (auto made = io::make_dirs(file.parent_path(), 0755); !made)
      return fail(std::move(made.error()));
  }
  if (auto place = enrol::check_socket_place(file); !place) return fail(std::move(place.error()));
  if (auto owner = enrol::check_socket_owner(file, ::geteuid()); !owner)
    return fail(std::move(owner.error()));
  auto lock = lock_unix(path);
  if (!lock) return fail(std::move(lock.error()));
  auto socket = listen_unix(path);
  if (!socket) return fail(std::move(socket.error()));
  if (::chmod(path.c_str(), 0666) != 0) return fail_errno("opening it to every user", errno);
  return Place{.lock = std::move(*lock), .listening = std::move(socket->fd)};
}

// The block of uids whose connections have a bound of their own. Accounts of the machine are in
// none.
std::optional<std::uint32_t> block_of(std::uint32_t uid) {
  const std::uint32_t block = uid >> 16;
  return block == 0 ? std::nullopt : std::optional(block);
}

template <class Counts, class Of>
bool has_share(const Counts& counts, Of of, std::size_t most) {
  const auto found = counts.find(of);
  return found != counts.end() && found->second >= most;
}

template <class Counts, class Of>
void count_down(Counts& counts, Of of) {
  if (--counts[of] == 0) counts.erase(of);
}

// What fits into the socket's buffer; the caller closes it.
void tell_full(int fd, std::string text, WallTime now) {
  const std::string bytes = answer_in_frame(
      refused_message({ErrorCode::ResourceExhausted, "letting a user log in: " + std::move(text) +
                                                         "; try again in a few seconds"},
                      now),
      now);
  (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::optional<std::uint32_t> uid_of_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer)
    return std::nullopt;
  return peer.uid;
}

}  // namespace

// Everything but post(), find_and_ask() and the first lines of stop() runs on `thread`.
struct LoginSocket::Impl : std::enable_shared_from_this<Impl> {
  Impl(LoginSocketOptions given, Login hook, const Clock& clock, Place at)
      : options(std::move(given)),
        login(std::move(hook)),
        lock(std::move(at.lock)),
        work(boost::asio::make_work_guard(context)),
        acceptor(context, stream_protocol(), at.listening.release()),
        again(context),
        trouble(clock, EnrolTrouble::Door::Socket),
        shared{.clock = clock,
               .most = options.most,
               .trouble = trouble,
               .serve =
                   [this](std::uint32_t uid, enrol::SocketLogin request, Enrolments::Done done) {
                     const BootTime until = shared.clock.now().boot + shared.most;
                     names.post("name of a uid", [this, uid, until, request = std::move(request),
                                                  done = std::move(done)]() mutable {
                       find_and_ask(uid, until, std::move(request), std::move(done));
                     });
                   },
               .post = {},
               .ended =
                   [this](const std::shared_ptr<LoginConnection>& connection) {
                     count_down(of_user, connection->uid());
                     if (const auto block = block_of(connection->uid()))
                       count_down(of_block, *block);
                     connections.erase(connection);
                   }} {}

  void begin() {
    shared.post = [weak = weak_from_this()](std::move_only_function<void()> task) {
      if (const auto self = weak.lock()) self->post(std::move(task));
    };
    accept();
    thread = std::thread([this] {
      pthread_setname_np(pthread_self(), "login");
      context.run();
    });
  }

  void accept() {
    acceptor.async_accept([this](const AcceptError& error, stream_protocol::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        serve(std::move(socket));
        return accept();
      }
      // Others are of one connection, which is gone.
      if (error == boost::asio::error::connection_aborted) return accept();
      trouble.note(EnrolCause::Accept, error.message());
      again.expires_after(kSocketAcceptAgain);
      again.async_wait([this](const AcceptError& stopped) {
        if (!stopped) accept();
      });
    });
  }

  void serve(stream_protocol::socket socket) {
    const auto uid = uid_of_peer(socket.native_handle());
    if (!uid) return;  // it is gone already
    const auto refuse = [&](EnrolCause cause, const char* text) {
      trouble.note(cause, "uid " + std::to_string(*uid));
      tell_full(socket.native_handle(), text, shared.clock.now().wall);
    };
    const auto block = block_of(*uid);
    if (connections.size() >= options.connections)
      return refuse(EnrolCause::Full,
                    "the controller's socket has as many connections as it serves");
    const std::size_t of_a_user =
        block ? std::min(options.of_a_user, (options.of_a_block + 3) / 4) : options.of_a_user;
    if (has_share(of_user, *uid, of_a_user))
      return refuse(EnrolCause::AddressFull, "this user has its share of the connections");
    if (block && has_share(of_block, *block, options.of_a_block))
      return refuse(EnrolCause::AddressFull,
                    "users with uids near this one have their share of the connections");
    const auto connection = std::make_shared<LoginConnection>(shared, std::move(socket), *uid);
    ++of_user[*uid];
    if (block) ++of_block[*block];
    connections.insert(connection);
    connection->start();
  }

  // On the thread of the names. After `until` nobody waits for the answer any more: a host that
  // answers slowly must not cost certificates that nobody gets.
  void find_and_ask(std::uint32_t uid, BootTime until, enrol::SocketLogin request,
                    Enrolments::Done done) const {
    if (shared.clock.now().boot > until) return;
    auto user = user_of_peer(uid, options.own, options.tables);
    if (!user) return done(fail(std::move(user.error()).in("letting a user log in")));
    login({.user = std::move(*user),
           .uid = uid,
           .public_key = std::move(request.public_key),
           .lifetime = request.lifetime},
          std::move(done));
  }

  // Any thread.
  void post(std::move_only_function<void()> task) {
    const MutexLock guard(mutex);
    if (!is_open) return;
    boost::asio::post(context, std::move(task));
  }

  void stop() {
    {
      const MutexLock guard(mutex);
      if (!std::exchange(is_open, false)) return;
    }
    // The thread ends when nothing is left to do.
    boost::asio::post(context, [this] {
      AcceptError ignored;
      acceptor.close(ignored);
      again.cancel();
      for (const auto& connection : std::set(connections)) connection->close();
      work.reset();
    });
    thread.join();
    names.stop();
    ::unlink(options.path.c_str());
  }

  const LoginSocketOptions options;
  const Login login;
  const io::UniqueFd lock;
  async::Loop names{"login-names"};
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  stream_protocol::acceptor acceptor;
  boost::asio::steady_timer again;
  EnrolTrouble trouble;
  LoginConnection::Shared shared;
  std::set<std::shared_ptr<LoginConnection>> connections;
  std::map<std::uint32_t, std::size_t> of_user, of_block;
  std::thread thread;
  Mutex mutex;
  bool is_open MUSTER_GUARDED_BY(mutex) = true;
};

Result<std::unique_ptr<LoginSocket>> LoginSocket::start(LoginSocketOptions options, Login login,
                                                        const Clock& clock) {
  auto place = open_place(options.path);
  if (!place)
    return fail(std::move(place.error()).in("letting users log in at '" + options.path + "'"));
  std::string path = options.path;
  auto impl =
      std::make_shared<Impl>(std::move(options), std::move(login), clock, std::move(*place));
  impl->begin();
  return std::unique_ptr<LoginSocket>(new LoginSocket(std::move(impl), std::move(path)));
}

LoginSocket::~LoginSocket() { stop(); }

void LoginSocket::stop() { impl_->stop(); }

}  // namespace muster::controller
