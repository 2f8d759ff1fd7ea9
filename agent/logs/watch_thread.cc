#include "agent/logs/watch_thread.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::agent {

WatchThread::WatchThread(const WatchOptions& options, WatchReports& reports,
                         std::shared_ptr<Inbox> inbox)
    : tools_(options, reports, std::move(inbox)),
      room_(options, reports, system_clock().now().boot) {}

void WatchThread::begin(RunParts parts) {
  const RunKey key = parts.run->key;
  runs_[key] = std::make_unique<RunWatch>(tools_, std::move(parts));
}

RunWatch* WatchThread::find(const RunKey& run) {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second.get();
}

bool WatchThread::take_tasks(bool& any) {
  std::vector<Inbox::Task> tasks;
  if (!tools_.inbox->take(tasks)) return false;
  any = !tasks.empty();
  for (Inbox::Task& task : tasks) task(this);
  return true;
}

bool WatchThread::pass(BootTime now) {
  bool more = false;
  for (const auto& [key, run] : runs_) more = run->pass(now) || more;
  return more;
}

BootTime WatchThread::next_due() const {
  BootTime due = BootTime::max();
  for (const auto& [key, run] : runs_) due = std::min(due, run->next_due());
  return due;
}

bool WatchThread::wait(BootTime until, bool listen) {
  const Duration most = std::max<Duration>(Duration::zero(), until - system_clock().now().boot);
  pollfd fds[2] = {{tools_.inbox->fd(), POLLIN, 0},
                   {tools_.changed_files.inotify().fd(), POLLIN, 0}};
  const timespec timeout{most / std::chrono::seconds(1), (most % std::chrono::seconds(1)).count()};
  (void)::ppoll(fds, listen ? 2 : 1, &timeout, nullptr);
  return listen && (fds[1].revents & POLLIN) != 0;
}

void WatchThread::poll(const Now& now) {
  tools_.changed_files.open();
  for (const auto& [key, run] : runs_) run->poll(now);
  keep_room(now.boot);
  tools_.scans.kick();
}

void WatchThread::keep_room(BootTime now) {
  if (runs_.empty() || !room_.due(now)) return;
  std::vector<std::shared_ptr<LogFile>> files;
  for (const auto& [key, run] : runs_) {
    const auto more = run->log_files();
    files.insert(files.end(), more.begin(), more.end());
  }
  if (files.empty()) return;
  room_.keep(now, files, runs_.rbegin()->second->logs_dir(), [this] {
    for (const auto& [key, run] : runs_) run->free_room();
  });
}

void WatchThread::work() {
  BootTime next_pass{};
  BootTime next_poll = system_clock().now().boot + tools_.options.blind_scan;
  bool more = false;
  tools_.changed_files.open();
  for (;;) {
    const BootTime due = next_due();
    const BootTime now = system_clock().now().boot;
    // Between passes inotify is not even polled: a rank that writes a thousand lines a second wakes
    // this thread fifty times.
    const bool listen = now >= next_pass;
    BootTime until = std::min(next_poll, due);
    if (!listen) until = std::min(until, next_pass);
    const bool changes = wait(more ? now : until, listen);
    bool tasks = false;
    if (!take_tasks(tasks)) return;
    if (changes) tools_.changed_files.pass_on();

    const Now then = system_clock().now();
    const bool polls = then.boot >= next_poll;
    if (polls) {
      poll(then);
      next_poll = then.boot + tools_.options.blind_scan;
    }
    if (!tasks && !changes && !polls && !more && then.boot < due) continue;
    more = pass(then.boot);
    if (!more) next_pass = then.boot + tools_.options.coalesce;
  }
}

}  // namespace muster::agent
