#include "controller/listen/acceptor.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace muster::controller {
namespace {

// What one turn of the loop takes from one socket, so that the others are not kept waiting.
constexpr int kTakenMost = 16;

// What an error of accept(2) is about: the connection, which is gone, or this process.
bool of_connection(int error_number) {
  constexpr std::array kOfConnection = {EINTR,        ECONNABORTED, EPROTO,     EPERM,
                                        ENETDOWN,     ENOPROTOOPT,  EHOSTDOWN,  ENONET,
                                        EHOSTUNREACH, EOPNOTSUPP,   ENETUNREACH};
  return std::ranges::find(kOfConnection, error_number) != kOfConnection.end();
}

// Closed with a reset: the kernel keeps nothing of it, however many there are.
void refuse(io::UniqueFd fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace

struct Acceptor::Source {
  explicit Source(Port opened) : port(std::move(opened)) {}
  Port port;
  std::unique_ptr<async::Readable> ready;
  std::unique_ptr<async::Timer> again;
};

Acceptor::Acceptor(std::vector<Port> ports, Connections& connections, const Clock& clock,
                   Hooks hooks)
    : connections_(connections), clock_(clock), hooks_(std::move(hooks)) {
  loop_.assert_idle();
  for (Port& port : ports) sources_.push_back(std::make_unique<Source>(std::move(port)));
}

Acceptor::~Acceptor() { stop(); }

void Acceptor::begin() {
  loop_.post("begin", [this] {
    loop_.assert_on();
    summary_ = std::make_unique<async::Timer>(loop_, "summary");
    watch_ = std::make_unique<async::Timer>(loop_, "watch");
    watch_connections();
    for (const auto& source : sources_) {
      source->again = std::make_unique<async::Timer>(loop_, "accept again");
      watch(*source);
    }
  });
}

void Acceptor::stop() {
  loop_.post("end", [this] {
    loop_.assert_on();
    sources_.clear();
    summary_.reset();
    watch_.reset();
  });
  loop_.stop();
}

void Acceptor::watch(Source& source) {
  source.ready = std::make_unique<async::Readable>(loop_, "accept", source.port.fd.get(),
                                                   [this, &source] { take(source); });
}

void Acceptor::take(Source& source) {
  loop_.assert_on();
  for (int taken = 0; taken < kTakenMost; ++taken) {
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    const int fd = hooks_.accept(source.port.fd.get(), reinterpret_cast<sockaddr*>(&from), &size);
    if (fd >= 0) {
      take_one(source, fd, from);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (!of_connection(errno)) {
      pause(source, errno);
      return;
    }
  }
}

void Acceptor::take_one(Source& source, int fd, const sockaddr_storage& from) {
  if (!source.port.counted) {
    source.port.hand_over(fd);
    return;
  }
  const auto peer = Peer::from_socket(from);
  if (!peer) {  // nothing of TCP is without an address
    refuse(io::UniqueFd(fd));
    return;
  }
  const auto full = connections_.add(fd, *peer, clock_.now().boot);
  if (!full) {
    source.port.hand_over(fd);
    return;
  }
  refuse(io::UniqueFd(fd));
  const std::string text = connections_.text_of(*full);
  note(text, "a connection from " + peer->text() + " was refused: " + text);
}

void Acceptor::watch_connections() {
  loop_.assert_on();
  connections_.watch(clock_.now().boot);
  for (const Connections::Ended& ended : connections_.take_ended())
    note("ended, of " + ended.of, ended.text);
  watch_->arm(Connections::kWatchApart, [this] { watch_connections(); });
}

void Acceptor::pause(Source& source, int error_number) {
  const std::string text = "accepting connections on '" + source.port.address +
                           "': " + std::strerror(error_number) + "; it is tried again";
  note(text, text);
  source.ready.reset();
  source.again->arm(kPause, [this, &source] { watch(source); });
}

void Acceptor::note(const std::string& cause, const std::string& text) {
  loop_.assert_on();
  const auto [line, is_new] = lines_.try_emplace(cause);
  line->second.text = text;
  if (!is_new) {
    ++line->second.since;
    return;
  }
  hooks_.warn(text);
  if (lines_.size() == 1) summary_->arm(kLinesApart, [this] { summarize(); });
}

void Acceptor::summarize() {
  loop_.assert_on();
  for (auto line = lines_.begin(); line != lines_.end();) {
    if (line->second.since == 0) {
      line = lines_.erase(line);
      continue;
    }
    hooks_.warn(line->second.text + " (" + std::to_string(line->second.since) +
                " times in the last minute)");
    line->second.since = 0;
    ++line;
  }
  if (!lines_.empty()) summary_->arm(kLinesApart, [this] { summarize(); });
}

}  // namespace muster::controller
