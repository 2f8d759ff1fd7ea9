#include "controller/links/log_receive.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"
#include "common/rpc/tls_port.h"
#include "controller/links/log_stream.h"
#include "controller/links/no_part.h"

namespace muster::links {
namespace {

constexpr std::chrono::nanoseconds kRetry = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds kSyncApart = std::chrono::seconds(2);
// the ranks of a node end at about the same time
constexpr std::chrono::nanoseconds kEndsApart = std::chrono::milliseconds(50);
// No agent of muster sends a longer name, and each answer contains the name as well.
constexpr std::size_t kAuxiliaryNameMost = 64;

using StreamPtr = std::shared_ptr<LogStream>;
using Answers = std::map<logs::LogKey, v1::LogHave>;
using Steady = std::chrono::steady_clock;

// A job id becomes the name of a directory, so nothing else may be accepted as one.
bool sound(const std::string& job) {
  return !job.empty() && job.size() <= 64 && std::ranges::all_of(job, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

template <class Message>
Result<logs::LogKey> key_of(const Message& message, const LogStream& stream) {
  const JobId job(message.job_id());
  const AttemptNo attempt(message.attempt());
  if (message.has_rank()) return logs::LogKey{job, attempt, RankNo(message.rank())};
  if (!message.node_log().empty())
    return logs::LogKey{job, attempt, RankNo(0), message.node_log(), stream.node};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("{} has neither a rank nor a node_log", Message::descriptor()->name()));
}

bool sound(const logs::LogKey& key) {
  return sound(key.job.str()) &&
         (key.auxiliary.empty() || logs::is_auxiliary(key.auxiliary, key.node.str()));
}

std::string name_of(const logs::LogKey& key) {
  return key.auxiliary.empty() ? fmt::format("rank {}", key.rank.value)
                               : fmt::format("'{}' on node '{}'", key.auxiliary, key.node.str());
}

grpc::Status end_of(const Error& error) {
  if (error.code == ErrorCode::NotAllowed) return rpc::to_refusal(error);
  return {error.code == ErrorCode::Conflict ? grpc::StatusCode::ABORTED
                                            : grpc::StatusCode::INVALID_ARGUMENT,
          error.message};
}

v1::LogHave have_of(const logs::LogKey& key, const logs::LogState& state) {
  v1::LogHave have;
  have.set_job_id(key.job.str());
  have.set_attempt(key.attempt.value);
  if (key.auxiliary.empty()) {
    have.set_rank(key.rank.value);
  } else {
    have.set_node_log(key.auxiliary);
  }
  have.set_offset(state.end);
  have.set_complete(state.durable);
  have.set_synced(state.synced);
  return have;
}

class Receiver final : public LogReceiver {
 public:
  Receiver(logs::LogStore& store, LogReceiveHooks hooks) : store_(store), hooks_(std::move(hooks)) {
    {
      const MutexLock lock(door_->mutex);
      door_->receiver = this;
    }
    writer_ = std::thread([this] { write(); });
    syncer_ = std::thread([this] { sync(); });
  }
  ~Receiver() override { Receiver::stop(); }
  Reactor* push_logs(grpc::CallbackServerContext* context) override;
  void stop() override;

 private:
  // What the streams' callbacks keep: the receiver may be destroyed before gRPC releases the last
  // stream.
  struct Door {
    Mutex mutex;
    Receiver* receiver MUSTER_GUARDED_BY(mutex) = nullptr;
  };
  struct Stalled {
    StreamPtr stream;
    Steady::time_point until;
  };
  void make_ready(const StreamPtr& stream);
  void forget(const LogStream* stream);
  void write();
  void sync();
  // Waits until there is something to sync. Returns false if the receiver stops.
  bool wait_for_sync();
  // Returns false if the stream must be served again later.
  bool serve(const StreamPtr& stream);
  // Io and ResourceExhausted: the disk failed, and the message is retried. Any other error ends the
  // stream.
  Result<void> take_in(const StreamPtr& stream, const v1::PushLogsRequest& request,
                       Answers& answers);
  [[nodiscard]] bool is_of(const logs::LogKey& key, const LogStream& stream) const;
  Result<void> open(const StreamPtr& stream, const logs::LogKey& key, Answers& answers);
  Result<void> answer(const StreamPtr& stream, const logs::LogKey& key,
                      Result<logs::LogState> state, Answers& answers);
  // Handles a message for a log that is not open. If the log is durable, the agent may not know
  // that yet.
  Result<void> not_open(const StreamPtr& stream, const logs::LogKey& key, const char* what,
                        Answers& answers);
  void tell_synced(const logs::LogKey& key, const logs::LogState& state);
  void tell_set_back(const logs::LogKey& key);
  void tell_complete(const logs::LogKey& key) const;
  void tell_trouble(const Error* error);
  void tell_sync_trouble(const std::optional<Error>& error);

  logs::LogStore& store_;
  const LogReceiveHooks hooks_;
  const std::shared_ptr<Door> door_ = std::make_shared<Door>();

  Mutex mutex_;
  CondVar work_, sync_work_;
  std::vector<StreamPtr> ready_ MUSTER_GUARDED_BY(mutex_);
  std::map<const LogStream*, std::weak_ptr<LogStream>> streams_ MUSTER_GUARDED_BY(mutex_);
  // which stream is sent what was synced, until all is synced
  std::map<logs::LogKey, std::weak_ptr<LogStream>> openers_ MUSTER_GUARDED_BY(mutex_);
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  bool wrote_ MUSTER_GUARDED_BY(mutex_) = false, ended_ MUSTER_GUARDED_BY(mutex_) = false;

  OncePerCause trouble_;       // used only by the writing thread
  bool saw_end_ = false;       // used only by the writing thread
  OncePerCause sync_trouble_;  // used only by the syncing thread
  std::thread writer_, syncer_;
};

LogReceiver::Reactor* Receiver::push_logs(grpc::CallbackServerContext* context) {
  const auto door = door_;
  const StreamPtr stream = LogStream::make(
      [door](const StreamPtr& ready) {
        const MutexLock lock(door->mutex);
        if (door->receiver) door->receiver->make_ready(ready);
      },
      [door](const LogStream* done) {
        const MutexLock lock(door->mutex);
        if (door->receiver) door->receiver->forget(done);
      },
      rpc::caller_of(*context),
      hooks_.enter ? hooks_.enter(*context) : controller::Revocations::Stay());
  bool stopping = false;
  {
    const MutexLock lock(mutex_);
    stopping = stopping_;
    if (!stopping) streams_.emplace(stream.get(), stream);
  }
  LogStream* const reactor = stream.get();  // keeps itself until OnDone
  if (stopping) {
    stream->end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the controller is stopping"));
  } else {
    stream->begin();
  }
  return reactor;
}

void Receiver::stop() {
  std::vector<StreamPtr> streams;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [name, weak] : streams_) {
      if (StreamPtr stream = weak.lock()) streams.push_back(std::move(stream));
    }
  }
  for (const StreamPtr& stream : streams)
    stream->end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the controller is stopping"));
  work_.notify_all();
  sync_work_.notify_all();
  if (writer_.joinable()) writer_.join();
  if (syncer_.joinable()) syncer_.join();
  const MutexLock lock(door_->mutex);
  door_->receiver = nullptr;
}

void Receiver::make_ready(const StreamPtr& stream) {
  {
    const MutexLock lock(mutex_);
    if (std::ranges::find(ready_, stream) == ready_.end()) ready_.push_back(stream);
  }
  work_.notify_one();
}

void Receiver::forget(const LogStream* stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  std::erase_if(openers_, [&](const auto& entry) {
    const StreamPtr opener = entry.second.lock();
    return !opener || opener.get() == stream;
  });
}

void Receiver::tell_trouble(const Error* error) {
  if (error && trouble_.first() && hooks_.on_trouble)
    hooks_.on_trouble("taking in logs: " + error->message +
                      "; agents keep them, retrying each second");
  if (!error && trouble_.over() && hooks_.on_trouble)
    hooks_.on_trouble("taking in logs: works again");
}

void Receiver::tell_sync_trouble(const std::optional<Error>& error) {
  const bool news = error ? sync_trouble_.first() : sync_trouble_.over();
  if (!news || !hooks_.on_trouble) return;
  hooks_.on_trouble(error ? "making logs durable: " + error->message +
                                "; agents keep theirs, trying again"
                          : "making logs durable: works again");
}

void Receiver::write() {
  std::vector<Stalled> stalled;
  for (;;) {
    std::vector<StreamPtr> streams;
    bool last = false;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && ready_.empty()) {
        if (stalled.empty()) {
          work_.wait(mutex_);
        } else if (!work_.wait_until(mutex_, stalled.front().until)) {
          break;
        }
      }
      streams.swap(ready_);
      last = stopping_ && streams.empty();
    }
    if (last) return;
    // A stalled stream waits until its time, even if more arrives on it.
    const Steady::time_point now = Steady::now();
    std::erase_if(streams, [&](const StreamPtr& stream) {
      return std::ranges::any_of(stalled, [&](const Stalled& one) { return one.stream == stream; });
    });
    while (!stalled.empty() && stalled.front().until <= now) {
      streams.push_back(std::move(stalled.front().stream));
      stalled.erase(stalled.begin());
    }
    for (const StreamPtr& stream : streams) {
      if (!serve(stream)) stalled.push_back({stream, now + kRetry});
    }
  }
}

bool Receiver::serve(const StreamPtr& stream) {
  bool closed = false;
  auto requests = stream->take(closed);
  Answers answers;
  bool again = false;
  while (!requests.empty()) {
    auto done = take_in(stream, requests.front(), answers);
    if (!done) {
      if (done.error().code == ErrorCode::Io || done.error().code == ErrorCode::ResourceExhausted) {
        tell_trouble(&done.error());
        // If the stream is gone, its agent has every byte, and sends them again.
        again = !stream->ended();
        if (again) stream->put_back(std::move(requests));
      } else {
        stream->end(end_of(done.error()));
      }
      break;
    }
    requests.pop_front();
  }
  for (const auto& [key, have] : answers) stream->answer(key, have);
  if (!answers.empty()) {
    const MutexLock lock(mutex_);
    wrote_ = true;
    ended_ = ended_ || std::exchange(saw_end_, false);
    sync_work_.notify_one();
  }
  if (again) return false;
  if (!answers.empty()) tell_trouble(nullptr);
  if (closed) {
    stream->end(grpc::Status::OK);
  } else {
    stream->read_on();
  }
  return true;
}

Result<void> Receiver::take_in(const StreamPtr& stream, const v1::PushLogsRequest& request,
                               Answers& answers) {
  if (request.has_hello()) {
    const NodeName node(request.hello().node());
    auto own = rpc::speaks_for(stream->caller(), node, "sending logs");
    if (!own && hooks_.on_refused) hooks_.on_refused(own.error());
    stream->greeted = own.has_value();
    stream->node = node;
    stream->instance = InstanceId(request.hello().instance());
    return own;
  }
  if (!stream->greeted)
    return fail(ErrorCode::InvalidArgument, "a log stream begins with LogHello");
  if (request.has_open()) {
    if (!sound(request.open().job_id()))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("opening a log: '{}' is no job id", request.open().job_id()));
    if (request.open().node_log().size() > kAuxiliaryNameMost)
      return fail(ErrorCode::InvalidArgument, "opening a log: the name of its process is too long");
    const auto key = key_of(request.open(), *stream);
    return key ? open(stream, *key, answers) : fail(key.error());
  }
  if (request.has_chunk()) {
    const v1::LogChunk& chunk = request.chunk();
    const auto key = key_of(chunk, *stream);
    if (!key) return fail(key.error());
    if (!stream->is_open(*key))
      return not_open(stream, *key, "bytes of a log that was not opened", answers);
    std::optional<logs::Gap> gap;
    if (chunk.has_gap()) {
      const WallTime at = to_wall(chunk.gap().at());
      gap = logs::Gap{chunk.gap().begin(), chunk.offset(), chunk.gap().reason(), at};
    }
    return answer(stream, *key, store_.append(*key, chunk.offset(), chunk.data(), gap), answers);
  }
  if (request.has_end()) {
    const auto key = key_of(request.end(), *stream);
    if (!key) return fail(key.error());
    if (!stream->is_open(*key))
      return not_open(stream, *key, "the end of a log that was not opened", answers);
    return answer(stream, *key, store_.finish(*key, request.end().size()), answers);
  }
  return {};  // a message of a newer agent
}

bool Receiver::is_of(const logs::LogKey& key, const LogStream& stream) const {
  return stream.caller().is_owner || !hooks_.is_of ||
         hooks_.is_of(key, stream.node, stream.instance);
}

Result<void> Receiver::open(const StreamPtr& stream, const logs::LogKey& key, Answers& answers) {
  if (!sound(key) || (hooks_.known && !hooks_.known(key.job, key.attempt)) ||
      !is_of(key, *stream)) {
    if (hooks_.is_others && hooks_.on_refused && hooks_.is_others(key, stream->node))
      hooks_.on_refused(controller::no_part("sending logs", stream->node, key.job, key.attempt));
    v1::LogHave have = have_of(key, {});
    have.set_unknown(true);
    answers[key] = std::move(have);
    return {};
  }
  stream->open(key);
  {
    const MutexLock lock(mutex_);
    openers_[key] = stream;
  }
  return answer(stream, key, store_.state(key), answers);
}

Result<void> Receiver::not_open(const StreamPtr& stream, const logs::LogKey& key, const char* what,
                                Answers& answers) {
  if (sound(key) && is_of(key, *stream)) {
    auto state = store_.state(key);
    if (!state || state->durable) return answer(stream, key, std::move(state), answers);
  }
  return fail(ErrorCode::InvalidArgument, what);
}

Result<void> Receiver::answer(const StreamPtr& stream, const logs::LogKey& key,
                              Result<logs::LogState> state, Answers& answers) {
  if (!state) return fail(std::move(state.error()));
  answers[key] = have_of(key, *state);
  saw_end_ = saw_end_ || (state->complete && !state->durable);
  if (!state->durable) return {};
  stream->close(key);
  {
    const MutexLock lock(mutex_);
    openers_.erase(key);
  }
  tell_complete(key);
  return {};
}

void Receiver::sync() {
  while (wait_for_sync()) {
    const logs::Synced synced = store_.sync();
    for (const logs::LogKey& key : synced.set_back) tell_set_back(key);
    for (const auto& [key, state] : synced.logs) tell_synced(key, state);
    tell_sync_trouble(synced.error);
    // A log that has ended may receive nothing more that would cause a sync.
    const MutexLock lock(mutex_);
    wrote_ = wrote_ || synced.error;
  }
}

bool Receiver::wait_for_sync() {
  const MutexLock lock(mutex_);
  while (!stopping_ && !wrote_) sync_work_.wait(mutex_);
  if (stopping_) return false;
  // Waits a little, so that one sync covers what arrives in the meantime.
  const auto apart = Steady::now() + kSyncApart;
  while (!stopping_ && !ended_ && sync_work_.wait_until(mutex_, apart)) {
  }
  const auto ends_apart = Steady::now() + kEndsApart;
  while (!stopping_ && ended_ && sync_work_.wait_until(mutex_, ends_apart)) {
  }
  if (stopping_) return false;
  wrote_ = ended_ = false;
  return true;
}

// Ends the stream that opened the log, so that its agent begins again from LogHave, however far it
// had come.
void Receiver::tell_set_back(const logs::LogKey& key) {
  StreamPtr stream;
  {
    const MutexLock lock(mutex_);
    if (const auto opener = openers_.find(key); opener != openers_.end()) {
      stream = opener->second.lock();
      openers_.erase(opener);
    }
  }
  if (!stream) return;
  stream->end({grpc::StatusCode::ABORTED,
               fmt::format("taking in the log of {} of job '{}': the controller's disk did not "
                           "take all of it; it is wanted again",
                           name_of(key), key.job.str())});
}

void Receiver::tell_complete(const logs::LogKey& key) const {
  if (hooks_.on_complete && key.auxiliary.empty())
    hooks_.on_complete(key.job, key.attempt, key.rank);
}

void Receiver::tell_synced(const logs::LogKey& key, const logs::LogState& state) {
  StreamPtr stream;
  {
    const MutexLock lock(mutex_);
    if (const auto opener = openers_.find(key); opener != openers_.end()) {
      stream = opener->second.lock();
      if (state.durable) openers_.erase(opener);
    }
  }
  if (stream && state.durable) stream->close(key);
  if (stream) stream->answer(key, have_of(key, state));
  if (state.durable) tell_complete(key);
}

}  // namespace

std::unique_ptr<LogReceiver> LogReceiver::start(logs::LogStore& store, LogReceiveHooks hooks) {
  return std::make_unique<Receiver>(store, std::move(hooks));
}

}  // namespace muster::links
