#include "agent/logs/watch_reports.h"

namespace muster::agent {

void WatchReports::post(const PublishedRun& run, std::function<void()> closure) const {
  if (!run.removed()) post_(std::move(closure));
}

void WatchReports::first_step(const PublishedRun& run, std::int64_t step) const {
  if (!callbacks_.on_first_step) return;
  post(run, [callback = callbacks_.on_first_step, key = run.key, step] { callback(key, step); });
}

void WatchReports::rank_end(const PublishedRun& run, RankNo rank, RankEnd answer) const {
  if (!callbacks_.on_rank_end) return;
  post(run, [callback = callbacks_.on_rank_end, key = run.key, rank, answer = std::move(answer)] {
    callback(key, rank, answer);
  });
}

void WatchReports::shard_finished(const PublishedRun& run) const {
  if (!callbacks_.on_shard_finished) return;
  post(run, [callback = callbacks_.on_shard_finished, key = run.key] { callback(key); });
}

void WatchReports::last_scan(const PublishedRun& run) const {
  if (!callbacks_.on_last_scan) return;
  post(run, [callback = callbacks_.on_last_scan, key = run.key] { callback(key); });
}

void WatchReports::trouble(const PublishedRun& run, const Error& error) const {
  if (!callbacks_.on_trouble) return;
  post(run, [callback = callbacks_.on_trouble, text = error.message + ", trying on"] {
    callback(text);
  });
}

void WatchReports::trouble(std::string text) const {
  if (!callbacks_.on_trouble) return;
  post_([callback = callbacks_.on_trouble, text = std::move(text)] { callback(text); });
}

void WatchReports::bytes_moved() {
  const MutexLock lock(wake_mutex_);
  if (wake_) wake_();
}

void WatchReports::on_bytes(std::function<void()> wake) {
  const MutexLock lock(wake_mutex_);
  wake_ = std::move(wake);
}

}  // namespace muster::agent
