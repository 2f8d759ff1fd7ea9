#include "agent/logs/inotify.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

namespace muster::agent {
namespace {

// Adds to an existing watch: a directory may be watched under two names and for two reasons. A
// directory of logs is the agent's own: a link in its place is not followed.
int add_watch(int fd, const std::string& dir, bool writes) {
  const std::uint32_t kinds = IN_CREATE | IN_MOVED_TO |
                              (writes ? IN_MODIFY | IN_DONT_FOLLOW : IN_CLOSE_WRITE | IN_DELETE) |
                              IN_ONLYDIR | IN_MASK_ADD;
  return ::inotify_add_watch(fd, dir.c_str(), kinds);
}

}  // namespace

Result<Inotify> Inotify::make(const std::function<int(int flags)>& init) {
  const int flags = IN_NONBLOCK | IN_CLOEXEC;
  io::UniqueFd fd(init ? init(flags) : ::inotify_init1(flags));
  if (!fd) {
    const int error = errno;
    auto failed = fail_errno("making an inotify instance", error);
    if (error == EMFILE || error == ENFILE) failed.error().code = ErrorCode::ResourceExhausted;
    return failed;
  }
  return Inotify(std::move(fd));
}

Inotify::Watching Inotify::watch(const std::string& dir, Owner owner, bool writes) {
  if (const auto known = by_dir_.find(dir); known != by_dir_.end()) {
    return watches_[known->second].owners.insert(owner).second ? Watching::New : Watching::Already;
  }
  if (!works()) return Watching::No;
  const int watch = add_watch(fd(), dir, writes);
  const int error = watch < 0 ? errno : 0;
  return took({.dir = dir, .watch = watch, .error = error}, owner);
}

std::vector<Inotify::Asked> Inotify::ask(const Instance& instance,
                                         const std::set<std::string>& dirs) {
  std::vector<Asked> all;
  all.reserve(dirs.size());
  for (const std::string& dir : dirs) {
    Asked& asked = all.emplace_back(Asked{.dir = dir});
    if (!instance) continue;
    asked.watch = add_watch(instance->get(), dir, false);
    if (asked.watch < 0) asked.error = errno;
  }
  return all;
}

Inotify::Watching Inotify::took(const Asked& asked, Owner owner) {
  if (asked.watch < 0) return asked.error == ENOSPC ? Watching::NoneLeft : Watching::No;
  if (const auto known = by_dir_.find(asked.dir);
      known != by_dir_.end() && known->second != asked.watch)
    drop(known->second, owner);
  by_dir_[asked.dir] = asked.watch;
  Watched& watched = watches_[asked.watch];
  // Two names of one directory have one watch.
  watched.dir = asked.dir;
  return watched.owners.insert(owner).second ? Watching::New : Watching::Already;
}

void Inotify::refuse(const std::vector<Asked>& asked) {
  for (const Asked& one : asked) {
    if (one.watch >= 0 && works() && !watches_.contains(one.watch))
      ::inotify_rm_watch(fd(), one.watch);
  }
}

void Inotify::drop(int watch, Owner owner) {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  found->second.owners.erase(owner);
  if (!found->second.owners.empty()) return;
  ::inotify_rm_watch(fd(), watch);
  std::erase_if(by_dir_, [&](const auto& entry) { return entry.second == watch; });
  watches_.erase(found);
}

void Inotify::forget(Owner owner) { keep(owner, {}); }

void Inotify::keep(Owner owner, const std::set<std::string>& dirs) {
  std::vector<int> gone;
  for (const auto& [watch, watched] : watches_) {
    if (watched.owners.contains(owner) && !dirs.contains(watched.dir)) gone.push_back(watch);
  }
  for (const int watch : gone) drop(watch, owner);
}

void Inotify::drain(const std::function<void(Owner, std::string_view)>& changed) {
  alignas(inotify_event) std::array<char, 16 << 10> buffer;
  // Bounded, so that a fast writer does not keep this thread here.
  for (int round = 0; round < 64; ++round) {
    const ssize_t got = ::read(fd(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        std::set<Owner> all;
        for (const auto& [watch, watched] : watches_)
          all.insert(watched.owners.begin(), watched.owners.end());
        for (const Owner owner : all) changed(owner, {});
        continue;
      }
      const auto found = watches_.find(event->wd);
      if (found == watches_.end()) continue;
      if ((event->mask & IN_IGNORED) != 0) {
        // The directory is gone; a new one may get the same name.
        std::erase_if(by_dir_, [&](const auto& entry) { return entry.second == event->wd; });
        for (const Owner owner : found->second.owners) changed(owner, {});
        watches_.erase(found);
        continue;
      }
      const std::string_view name =
          event->len > 0 ? std::string_view(event->name) : std::string_view();
      for (const Owner owner : found->second.owners) changed(owner, name);
    }
  }
}

}  // namespace muster::agent
