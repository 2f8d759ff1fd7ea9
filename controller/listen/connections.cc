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
  // Others must find room beside one who opens as many as there are. An agent has one for its
  // control stream, one for its logs, and one for each transfer of files.
  bounds.of_user = std::clamp<std::size_t>(bounds.all / 4, 2, 1'024);
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

void Connections::has_called(const Peer& peer, const std::function<ConnectionOwner()>& owner_of) {
  const MutexLock lock(mutex_);
  for (const int fd : unfinished_) {
    Connection& one = open_.at(fd);
    // Another connection may have had the same peer before.
    if (one.peer != peer || inode_of(fd) != one.inode) continue;
    leave_unfinished(fd, one.peer);
    one.owner = owner_of();
    of_owner_[one.owner->name].insert(fd);
    return;
  }
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
  if (open_.size() >= bounds_.all) end_beyond_shares();
}

void Connections::end_beyond_shares() {
  std::vector<int> beyond;
  for (const auto& [name, share] : of_owner_) {
    std::vector<int> newest(share.begin(), share.end());
    std::ranges::sort(newest, std::greater{},
                      [&](int fd) MUSTER_REQUIRES(mutex_) { return open_.at(fd).since; });
    const std::size_t most = open_.at(newest.front()).owner->most;
    if (newest.size() <= most) continue;
    newest.resize(newest.size() - most);
    ended_ = std::to_string(newest.size()) + " connections of " + name +
             " were ended, because all places were taken and one name may keep " +
             std::to_string(most) + "; use one connection for many calls";
    beyond.insert(beyond.end(), newest.begin(), newest.end());
  }
  for (const int fd : beyond) end(fd);
}

std::string Connections::take_ended() {
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
  if (!one.owner) {
    leave_unfinished(fd, one.peer);
  } else {
    const auto share = of_owner_.find(one.owner->name);
    share->second.erase(fd);
    if (share->second.empty()) of_owner_.erase(share);
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
