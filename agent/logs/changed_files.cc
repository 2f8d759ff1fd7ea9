#include "agent/logs/changed_files.h"

#include <fmt/format.h>

#include <utility>

namespace muster::agent {

void ChangedFiles::open() {
  if (inotify_.works()) return;
  auto made = Inotify::make(options_.inotify_init);
  if (made) {
    inotify_ = std::move(*made);
    return;
  }
  if (!no_instance_.first()) return;
  reports_.trouble(fmt::format(
      "watching files: {}; logs are read every {} ms and save directories scanned every {} ms "
      "instead, runs go on as ever{}",
      made.error().message, options_.unnotified_scan / std::chrono::milliseconds(1),
      options_.blind_scan / std::chrono::milliseconds(1),
      made.error().code == ErrorCode::ResourceExhausted
          ? "; raise fs.inotify.max_user_instances (sysctl), which bounds how many a user may have"
          : ""));
}

bool ChangedFiles::watch_writes(const std::string& dir, Inotify::Owner owner) {
  const Inotify::Watching watching = inotify_.watch(dir, owner, true);
  if (watching == Inotify::Watching::NoneLeft && no_watch_left_.first())
    reports_.trouble(fmt::format(
        "watching files: this user's inotify watches are used up; logs are read every {} ms "
        "instead, runs go on as ever; raise fs.inotify.max_user_watches (sysctl)",
        options_.unnotified_scan / std::chrono::milliseconds(1)));
  return watching == Inotify::Watching::New || watching == Inotify::Watching::Already;
}

void ChangedFiles::pass_on() {
  inotify_.drain([this](Inotify::Owner owner, std::string_view name) {
    const auto listener = listeners_.find(owner);
    if (listener != listeners_.end()) listener->second->changed(name);
  });
}

}  // namespace muster::agent
