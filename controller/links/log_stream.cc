#include "controller/links/log_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::links {

std::size_t queue_cost(const v1::PushLogsRequest& request) {
  return sizeof(v1::PushLogsRequest) + sizeof(v1::LogChunk) + request.ByteSizeLong();
}

std::shared_ptr<LogStream> LogStream::make(
    std::function<void(const std::shared_ptr<LogStream>&)> ready,
    std::function<void(const LogStream*)> done, rpc::Caller caller,
    controller::Revocations::Stay stay) {
  std::shared_ptr<LogStream> stream(new LogStream(std::move(caller), std::move(stay)));
  stream->ready_ = std::move(ready);
  stream->done_ = std::move(done);
  const MutexLock lock(stream->mutex_);
  stream->self_ = stream;
  return stream;
}

void LogStream::begin() {
  const MutexLock lock(mutex_);
  read_locked();
}

void LogStream::end(const grpc::Status& status) {
  const MutexLock lock(mutex_);
  if (std::exchange(ended_, true)) return;
  Finish(status);
}

std::deque<v1::PushLogsRequest> LogStream::take(bool& closed) {
  const MutexLock lock(mutex_);
  closed = closed_;
  return std::exchange(queue_, {});
}

bool LogStream::ended() {
  const MutexLock lock(mutex_);
  return ended_;
}

void LogStream::put_back(std::deque<v1::PushLogsRequest> rest) {
  const MutexLock lock(mutex_);
  queue_.insert(queue_.begin(), std::make_move_iterator(rest.begin()),
                std::make_move_iterator(rest.end()));
}

void LogStream::read_on() {
  const MutexLock lock(mutex_);
  queued_bytes_ = 0;
  for (const auto& waiting : queue_) queued_bytes_ += queue_cost(waiting);
  read_locked();
}

void LogStream::read_locked() {
  if (reading_ || closed_ || ended_ || queued_bytes_ >= kQueueBytes ||
      answers_.size() >= kAnswersMost)
    return;
  reading_ = true;
  StartRead(&request_);
}

void LogStream::answer(const logs::LogKey& key, const v1::LogHave& have) {
  const MutexLock lock(mutex_);
  v1::LogHave& merged = answers_.try_emplace(key, have).first->second;
  merged.set_offset(std::max(merged.offset(), have.offset()));
  merged.set_synced(std::max(merged.synced(), have.synced()));
  merged.set_complete(merged.complete() || have.complete());
  write_locked();
}

void LogStream::open(const logs::LogKey& key) {
  const MutexLock lock(mutex_);
  open_.insert(key);
}

void LogStream::close(const logs::LogKey& key) {
  const MutexLock lock(mutex_);
  open_.erase(key);
}

bool LogStream::is_open(const logs::LogKey& key) {
  const MutexLock lock(mutex_);
  return open_.contains(key);
}

void LogStream::write_locked() {
  if (writing_ || ended_ || answers_.empty()) return;
  response_.Clear();
  for (auto& [key, have] : answers_) response_.add_have()->Swap(&have);
  answers_.clear();
  writing_ = true;
  StartWrite(&response_);
}

void LogStream::OnReadDone(bool ok) {
  std::shared_ptr<LogStream> self;
  {
    const MutexLock lock(mutex_);
    self = self_;
    reading_ = false;
    if (ok) {
      queued_bytes_ += queue_cost(request_);
      queue_.push_back(std::move(request_));
      request_.Clear();
      read_locked();
    } else {
      closed_ = true;
    }
  }
  if (self) ready_(self);
}

void LogStream::OnWriteDone(bool ok) {
  const MutexLock lock(mutex_);
  writing_ = false;
  if (!ok) return;
  write_locked();
  read_locked();
}

void LogStream::OnCancel() {
  end(grpc::Status(grpc::StatusCode::CANCELLED, "the agent's connection ended"));
}

void LogStream::OnDone() {
  stay_.leave();
  done_(this);
  std::shared_ptr<LogStream> self;
  {
    const MutexLock lock(mutex_);
    self.swap(self_);
  }
  // `self` is destroyed here, perhaps as the last reference.
}

}  // namespace muster::links
