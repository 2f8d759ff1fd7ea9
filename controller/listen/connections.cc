#include "controller/listen/connections.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/io/unique_fd.h"

namespace muster::controller {
namespace {

// 0: it is not open, or no socket.
ino_t inode_of(int fd) {
  struct stat found{};
  return ::fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode) ? found.st_ino : 0;
}

std::string mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

ConnectionBounds bounds_for(std::size_t descriptors, std::size_t others) {
  constexpr std::size_t kOwn = 512;               // 256 logs, the rest for files and local clients
  constexpr std::size_t kUnfinishedMost = 1'024;  // some 100 KiB of memory each
  constexpr std::size_t kUnfinishedOfSenderLeast = 4;
  ConnectionBounds bounds;
  bounds.all = std::max<std::size_t>(4, descriptors - std::min(descriptors / 4 * 3, kOwn + others));
  bounds.unfinished = std::clamp<std::size_t>(bounds.all / 2, 1, kUnfinishedMost);
  bounds.unfinished_of_sender =
      std::min(bounds.unfinished, std::max(bounds.unfinished / 4, kUnfinishedOfSenderLeast));
  // Others must find room beside one who opens as many as there are. On one connection of a user,
  // gRPC keeps up to 1 MiB that no call reads: 64 KiB for each stream. An agent has one for its
  // control stream, one for its logs, and one for each transfer of files.
  bounds.of_user = std::clamp<std::size_t>(bounds.all / 4, 2, 64);
  bounds.of_node = std::clamp<std::size_t>(bounds.all / 4, 2, 512);
  return bounds;
}

std::optional<Connections::Full> Connections::add(int fd, const Peer& peer, BootTime now) {
  const MutexLock lock(mutex_);
  forget(fd);  // what had this number is closed
  if (full(peer) && (!checked_ || now - *checked_ >= kCheckApart)) check(now);
  if (const auto forbids = full(peer)) return forbids;
  open_.emplace(fd, Connection{.inode = inode_of(fd), .peer = peer, .since = now});
  unfinished_.insert(fd);
  ++of_sender_[peer.sender()];
  return std::nullopt;
}

ConnectionOwner Connections::owner(const pki::Identity& caller) const {
  return {.name = pki::text_of(caller),
          .most = caller.role == pki::Role::Node ? bounds_.of_node : bounds_.of_user};
}

Result<void> Connections::begin(rpc::ConnectionId connection, const ConnectionOwner& owner,
                                BootTime now) {
  const MutexLock lock(mutex_);
  constexpr std::string_view kDoing = "calling the controller: ";
  if (!of_id_.contains(connection) && has_at_least(owner.name, owner.most)) {
    return fail(ErrorCode::ResourceExhausted,
                std::string(kDoing) + owner.name + " has " + std::to_string(owner.most) +
                    " connections already, which is the bound; use one connection for many calls, "
                    "or try again when others have ended");
  }
  if (begun_.begin(connection, owner.name, now)) return {};
  return fail(ErrorCode::ResourceExhausted,
              std::string(kDoing) + owner.name + " has " +
                  std::to_string(BegunCalls::kOfOwnerMost) +
                  " calls whose requests are not whole, which is the bound");
}

void Connections::has_called(const Called& call, const std::function<ConnectionOwner()>& owner_of) {
  const MutexLock lock(mutex_);
  const rpc::ConnectionId id = call.connection.get();
  begun_.whole(id);
  if (id != nullptr && of_id_.contains(id)) return;
  for (const int fd : unfinished_) {
    Connection& one = open_.at(fd);
    // Another connection may have had the same peer before.
    if (one.peer != call.peer || inode_of(fd) != one.inode) continue;
    leave_unfinished(fd, one.peer);
    one.owner = owner_of();
    const auto [name, most] = std::pair(one.owner->name, one.owner->most);
    of_owner_[name].insert(fd);
    if (id != nullptr) {
      one.id = call.connection;
      of_id_.emplace(id, fd);
      if (BegunCalls::Of* begun = begun_.find(id)) begun->received = 0;
    }
    // Several that began at the same time.
    if (has_at_least(name, most + 1) && open_.contains(fd)) {
      end_because(fd, "this name has " + std::to_string(most) +
                          " others; use one connection for many calls");
    }
    return;
  }
}

bool Connections::has_at_least(const std::string& owner, std::size_t count) {
  const auto share = of_owner_.find(owner);
  if (share == of_owner_.end() || share->second.size() < count) return false;
  const std::vector<int> all(share->second.begin(), share->second.end());
  for (const int fd : all) {
    if (inode_of(fd) != open_.at(fd).inode) forget(fd);
  }
  const auto left = of_owner_.find(owner);
  return left != of_owner_.end() && left->second.size() >= count;
}

void Connections::watch(BootTime now) {
  const MutexLock lock(mutex_);
  watch_nobodys(now);
  watch_owned(now);
  watch_streams(now);
}

void Connections::watch_nobodys(BootTime now) {
  std::map<std::array<std::uint8_t, 16>, std::vector<Unread>> of_sender;
  std::uint64_t all = 0;
  const std::vector<int> these(unfinished_.begin(), unfinished_.end());
  for (const int fd : these) {
    const Connection& one = open_.at(fd);
    if (inode_of(fd) != one.inode) {
      forget(fd);
    } else if (now - one.since > kNobodysMost) {
      end(fd);
    } else {
      const Unread unread{.bytes = received_(fd), .fd = fd};
      of_sender[one.peer.sender()].push_back(unread);
      all += unread.bytes;
    }
  }
  std::vector<std::pair<std::uint64_t, std::vector<Unread>>> senders;
  for (auto& [sender, unread] : of_sender) {
    std::uint64_t sum = 0;
    for (const Unread& one : unread) sum += one.bytes;
    std::ranges::sort(unread, std::ranges::less{}, &Unread::bytes);
    senders.emplace_back(sum, std::move(unread));
  }
  // The largest one of the sender with the most, until it is enough.
  for (auto& [sum, unread] : senders) {
    while (!unread.empty() && unread.back().bytes > kUnreadOfOneMost) {
      end_beyond(unread.back(), all);
      sum -= unread.back().bytes;
      all -= unread.back().bytes;
      unread.pop_back();
    }
  }
  while (all > kUnreadMost) {
    auto& [sum, unread] =
        *std::ranges::max_element(senders, {}, [](const auto& sender) { return sender.first; });
    end_beyond(unread.back(), all);
    sum -= unread.back().bytes;
    all -= unread.back().bytes;
    unread.pop_back();
  }
}

void Connections::watch_owned(BootTime now) {
  std::map<std::string, std::vector<Unread>> of_owner;
  std::vector<int> closed;
  std::vector<rpc::ConnectionId> gone;
  for (const auto& [id, of] : begun_.all()) {
    const auto found = of_id_.find(id);
    if (found == of_id_.end()) {
      // By now its connection, which is nobody's, has ended.
      if (now - of.last > kNobodysMost + std::chrono::minutes(1)) gone.push_back(id);
      continue;
    }
    const int fd = found->second;
    if (inode_of(fd) != open_.at(fd).inode) {
      closed.push_back(fd);
      continue;
    }
    const std::uint64_t received = received_(fd);
    BegunCalls::Of& begun = *begun_.find(id);
    if (!begun.received) begun.received = received;
    of_owner[of.owner].push_back(
        {.bytes = received - std::min(received, *begun.received), .fd = fd});
  }
  for (const rpc::ConnectionId id : gone) begun_.forget(id);
  for (const int fd : closed) forget(fd);
  for (auto& [owner, unread] : of_owner) end_largest(std::move(unread));
}

void Connections::has_stream(rpc::ConnectionId connection,
                             const std::shared_ptr<std::atomic<bool>>& message_came) {
  const MutexLock lock(mutex_);
  const auto found = of_id_.find(connection);
  if (found == of_id_.end()) return;
  const int fd = found->second;
  std::vector<Stream>& streams = open_.at(fd).streams;
  std::erase_if(streams, [](const Stream& stream) { return stream.message_came.expired(); });
  streams.push_back({.message_came = message_came, .received = received_(fd)});
  with_streams_.insert(fd);
}

void Connections::watch_streams(BootTime now) {
  if (streams_watched_ && now - *streams_watched_ < streams_apart(with_streams_.size())) return;
  streams_watched_ = now;
  const std::vector<int> these(with_streams_.begin(), with_streams_.end());
  std::map<std::string, std::vector<Unread>> of_owner;
  for (const int fd : these) {
    Connection& one = open_.at(fd);
    if (inode_of(fd) != one.inode) {
      forget(fd);
      continue;
    }
    std::erase_if(one.streams, [](const Stream& stream) { return stream.message_came.expired(); });
    if (one.streams.empty()) {
      with_streams_.erase(fd);
      continue;
    }
    const std::uint64_t received = received_(fd);
    Unread unread{.bytes = 0, .fd = fd};
    for (Stream& stream : one.streams) {
      const auto came = stream.message_came.lock();
      if (came == nullptr || came->exchange(false)) stream.received = received;
      unread.bytes = std::max(unread.bytes, received - std::min(received, stream.received));
    }
    of_owner[one.owner->name].push_back(unread);
  }
  for (auto& [owner, unread] : of_owner) end_largest(std::move(unread));
}

void Connections::end_largest(std::vector<Unread> unread) {
  std::ranges::sort(unread, std::ranges::greater{}, &Unread::bytes);
  std::uint64_t all = 0;
  for (const Unread& one : unread) all += one.bytes;
  for (const Unread& one : unread) {
    if (one.bytes <= kUnreadOfOneMost && all <= kUnreadMost) return;
    end_beyond(one, all);
    all -= one.bytes;
  }
}

void Connections::end_beyond(const Unread& one, std::uint64_t all) {
  const std::string sent = "it has sent " + mib(one.bytes) + " while a request was not whole, and ";
  end_because(one.fd, one.bytes > kUnreadOfOneMost
                          ? sent + "may send " + mib(kUnreadOfOneMost)
                          : sent + "with others like it " + mib(all) +
                                " where all of them may send " + mib(kUnreadMost));
}

void Connections::end_because(int fd, const std::string& why) {
  const Connection& one = open_.at(fd);
  const std::string from = one.peer.text();
  const std::string of = one.owner ? "of " + one.owner->name : "without a whole request yet";
  if (ended_.size() < kEndedMost) {
    ended_.push_back({.of = one.owner ? one.owner->name : from,
                      .text = "a connection " + of + " from " + from + " was ended: " + why});
  }
  end(fd);
}

std::optional<Connections::Full> Connections::full(const Peer& peer) const {
  if (open_.size() >= bounds_.all) return Full::All;
  if (unfinished_.size() >= bounds_.unfinished) return Full::Unfinished;
  const auto of_sender = of_sender_.find(peer.sender());
  if (of_sender != of_sender_.end() && of_sender->second >= bounds_.unfinished_of_sender)
    return Full::UnfinishedOfSender;
  return std::nullopt;
}

void Connections::check(BootTime now) {
  checked_ = now;
  // Where only the unfinished ones are too many, only they are checked.
  std::vector<int> these;
  if (open_.size() >= bounds_.all) {
    for (const auto& [fd, one] : open_) these.push_back(fd);
  } else {
    these.assign(unfinished_.begin(), unfinished_.end());
  }
  for (const int fd : these) {
    const Connection& one = open_.at(fd);
    if (inode_of(fd) != one.inode) {
      forget(fd);
    } else if (one.owner ? one.owner->revoked != nullptr && *one.owner->revoked
                         : now - one.since > handshake_most_) {
      end(fd);
    }
  }
}

std::vector<Connections::Ended> Connections::take_ended() {
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

void Connections::leave_unfinished(int fd, const Peer& peer) {
  unfinished_.erase(fd);
  const auto of_sender = of_sender_.find(peer.sender());
  if (--of_sender->second == 0) of_sender_.erase(of_sender);
}

// gRPC sees the end, and closes the descriptor. The number may become another file's at any time,
// so a copy of the descriptor is checked and used. Without a descriptor for it nothing is ended.
void Connections::end(int fd) {
  const io::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return;
  if (inode_of(copy.get()) == open_.at(fd).inode) ::shutdown(copy.get(), SHUT_RDWR);
  forget(fd);
}

void Connections::forget(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  const Connection& one = found->second;
  with_streams_.erase(fd);
  if (!one.owner) {
    leave_unfinished(fd, one.peer);
  } else {
    const auto share = of_owner_.find(one.owner->name);
    share->second.erase(fd);
    if (share->second.empty()) of_owner_.erase(share);
    if (one.id != nullptr) {
      of_id_.erase(one.id.get());
      begun_.forget(one.id.get());
    }
  }
  open_.erase(found);
}

std::string Connections::text_of(Full full) const {
  switch (full) {
    case Full::All:
      return "there are " + std::to_string(bounds_.all) +
             " connections over TCP, which is the bound; raise the hard limit of descriptors "
             "(ulimit -Hn, LimitNOFILE=) and start again, if these are your own nodes and users";
    case Full::Unfinished:
      return std::to_string(bounds_.unfinished) +
             " connections over TCP have not shown a certificate yet, which is the bound";
    case Full::UnfinishedOfSender:
      return std::to_string(bounds_.unfinished_of_sender) +
             " connections of one address have not shown a certificate yet, which is the bound";
  }
  std::unreachable();
}

std::size_t Connections::open() const {
  const MutexLock lock(mutex_);
  return open_.size();
}

std::size_t Connections::unfinished() const {
  const MutexLock lock(mutex_);
  return unfinished_.size();
}

}  // namespace muster::controller
