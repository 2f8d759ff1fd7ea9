#include "agent/link/log_push.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "agent/link/sendable.h"
#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/proto/proto_time.h"
#include "common/rpc/backoff.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {
namespace {

constexpr int kFailedTurns = 8;  // chunks of a failed rank's log per chunk of another rank's log
constexpr Duration kAskAgain = std::chrono::milliseconds(100);

using Stream = grpc::ClientReaderWriter<v1::PushLogsRequest, v1::PushLogsResponse>;

template <class Message>
void name_it(const LogName& name, Message& message) {
  message.set_job_id(name.run.first.str());
  message.set_attempt(name.run.second.value);
  if (name.auxiliary.empty()) {
    message.set_rank(name.rank.value);
  } else {
    message.set_node_log(name.auxiliary);
  }
}

bool write(Stream& stream, v1::PushLogsRequest& request) {
  make_sendable(request);
  return stream.Write(request);
}

class StreamPush final : public LogPush {
 public:
  StreamPush(LogPushOptions options, LogPushHooks hooks, LogSource& source)
      : options_(options), hooks_(std::move(hooks)), source_(source), thread_([this] { work(); }) {
    source_.on_bytes([this] { wake(); });
  }
  ~StreamPush() override { StreamPush::stop(); }
  void stop() override;

 private:
  // One log on the current stream.
  struct Log {
    enum class State : std::uint8_t { Asked, Open, Ended, Unknown } state = State::Asked;
    std::uint64_t sent = 0;   // logical; all bytes below were given to gRPC on this stream
    std::uint64_t have = 0;   // what the controller has, as it reported
    std::uint64_t tried = 0;  // status.end at the last read that found nothing
    std::uint32_t segment = 0;
    bool idle = false;  // nothing to read until `tried` or `segment` change
    bool complete = false;
  };
  void wake();
  void work();
  // Serves one stream until it breaks. Returns whether it worked. Empty result: there is no
  // controller yet.
  std::optional<bool> serve();
  void listen(Stream& stream);
  bool pump(Stream& stream);
  // Returns the runs that have an auxiliary log that is not complete yet.
  std::set<RunKey> waiting_for_auxiliaries(const std::vector<LogStatus>& logs);
  // One turn of one log: sends at most one chunk, and the end of the log unless `hold_end`. Empty
  // result: the stream is broken. False: there was nothing to send.
  std::optional<bool> turn(Stream& stream, const LogStatus& status, Log& log, bool hold_end);
  void drop_all_but(const std::vector<LogStatus>& logs);
  void trouble(const std::string& text);

  const LogPushOptions options_;
  const LogPushHooks hooks_;
  LogSource& source_;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false, broken_ MUSTER_GUARDED_BY(mutex_) = false;
  bool woken_ MUSTER_GUARDED_BY(mutex_) = false, answered_ MUSTER_GUARDED_BY(mutex_) = false;
  std::map<LogName, Log> logs_ MUSTER_GUARDED_BY(mutex_);  // of this stream
  std::uint64_t unacked_ MUSTER_GUARDED_BY(mutex_) = 0;    // over all of logs_
  // Not empty: what of this stream's answers was refused.
  std::string refused_ MUSTER_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  OncePerCause trouble_;  // of the pumping thread
  std::thread thread_;
};

void StreamPush::stop() {
  source_.on_bytes({});
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (context_) context_->TryCancel();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StreamPush::wake() {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

void StreamPush::trouble(const std::string& text) {
  if (trouble_.first() && hooks_.on_trouble) hooks_.on_trouble(text);
}

void StreamPush::work() {
  rpc::Backoff backoff(std::random_device{}());
  for (;;) {
    const auto worked = serve();
    if (!worked || *worked) backoff.reset();
    const MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + (worked ? backoff.next() : kAskAgain);
    while (!stopping_ && wake_.wait_until(mutex_, until)) {
    }
    if (stopping_) return;
  }
}

std::optional<bool> StreamPush::serve() {
  const auto hello = hooks_.hello();
  if (!hello) return std::nullopt;
  const auto channel = hooks_.channel();
  if (!channel) return std::nullopt;
  grpc::ClientContext context;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    context_ = &context;
    logs_.clear();
    unacked_ = 0;
    broken_ = answered_ = false;
    refused_.clear();
    woken_ = true;
  }
  const auto stub = v1::AgentService::NewStub(channel);
  const std::unique_ptr<Stream> stream = stub->PushLogs(&context);
  std::thread listener([&] { listen(*stream); });
  v1::PushLogsRequest request;
  *request.mutable_hello() = *hello;
  if (write(*stream, request)) {
    while (pump(*stream)) {
    }
  }
  context.TryCancel();
  listener.join();
  const grpc::Status status = stream->Finish();
  const MutexLock lock(mutex_);
  context_ = nullptr;
  const bool worked = answered_ && refused_.empty();
  if (!stopping_ && !worked) {
    std::string why = refused_.empty() ? status.error_message() : refused_;
    if (why.empty()) why = "the connection ended";
    trouble("sending logs to the controller: " + why + ", retrying");
  }
  return worked;
}

void StreamPush::listen(Stream& stream) {
  v1::PushLogsResponse response;
  while (stream.Read(&response)) {
    for (const v1::LogHave& have : response.have()) {
      if (!have.has_rank() && have.node_log().empty()) {
        const MutexLock lock(mutex_);
        refused_ = "its LogHave has neither a rank nor a node_log";
        context_->TryCancel();
        continue;
      }
      const LogName name{
          {JobId(have.job_id()), AttemptNo(have.attempt())}, RankNo(have.rank()), have.node_log()};
      // Before the log is opened here, because the source must know this before the first read.
      if (!have.unknown())
        source_.controller_has(name, have.offset(), have.synced(), have.complete());
      bool completed = false;
      {
        const MutexLock lock(mutex_);
        answered_ = true;
        const auto found = logs_.find(name);
        if (found == logs_.end()) continue;
        Log& log = found->second;
        if (have.unknown()) log.state = Log::State::Unknown;
        if (log.state == Log::State::Asked) {
          log.state = Log::State::Open;
          log.sent = log.have = have.offset();
        }
        const std::uint64_t now = std::clamp(have.offset(), log.have, log.sent);
        unacked_ -= std::min(unacked_, now - log.have);
        log.have = now;
        completed = have.complete() && !std::exchange(log.complete, true);
      }
      if (completed && hooks_.on_complete) hooks_.on_complete(name.run);
    }
    wake();
  }
  {
    const MutexLock lock(mutex_);
    broken_ = true;
  }
  wake_.notify_one();
}

bool StreamPush::pump(Stream& stream) {
  {
    const MutexLock lock(mutex_);
    while (!stopping_ && !broken_ && !woken_) wake_.wait(mutex_);
    if (stopping_ || broken_) return false;
    woken_ = false;
  }
  for (bool sent_any = true; sent_any;) {
    sent_any = false;
    const std::vector<LogStatus> logs = source_.logs();
    const std::set<RunKey> waiting = waiting_for_auxiliaries(logs);
    for (const LogStatus& status : logs) {
      Log* log = nullptr;
      {
        const MutexLock lock(mutex_);
        if (stopping_ || broken_) return false;
        const auto [at, made] = logs_.try_emplace(status.name);
        log = &at->second;  // only this thread adds and removes logs
        if (!made) {
          if (log->state != Log::State::Open || unacked_ >= options_.window) continue;
          if (log->idle && log->tried == status.end && log->segment == status.version &&
              !status.ended)
            continue;
        }
        if (made) log->idle = false;
        if (made) log = nullptr;
      }
      if (!log) {
        v1::PushLogsRequest request;
        name_it(status.name, *request.mutable_open());
        if (!write(stream, request)) return false;
        continue;
      }
      const bool hold_end = status.name.auxiliary.empty() && waiting.contains(status.name.run);
      for (int turns = status.failed ? kFailedTurns : 1; turns > 0; --turns) {
        const auto sent = turn(stream, status, *log, hold_end);
        if (!sent) return false;
        if (!*sent) break;
        sent_any = true;
      }
    }
    drop_all_but(logs);
  }
  return true;
}

// A log that the controller does not want is not waited for.
std::set<RunKey> StreamPush::waiting_for_auxiliaries(const std::vector<LogStatus>& logs) {
  std::set<RunKey> waiting;
  const MutexLock lock(mutex_);
  for (const LogStatus& status : logs) {
    if (status.name.auxiliary.empty()) continue;
    const auto found = logs_.find(status.name);
    if (found == logs_.end() || found->second.state != Log::State::Unknown)
      waiting.insert(status.name.run);
  }
  return waiting;
}

// A stream lives for months, a log only as long as its job. So logs that the source has finished
// are removed.
void StreamPush::drop_all_but(const std::vector<LogStatus>& logs) {
  const MutexLock lock(mutex_);
  if (logs_.size() == logs.size()) return;
  std::set<LogName> named;
  for (const LogStatus& status : logs) named.insert(status.name);
  std::erase_if(logs_, [&](const auto& one) MUSTER_REQUIRES(mutex_) {
    const auto& [name, log] = one;
    if (named.contains(name)) return false;
    unacked_ -= std::min(unacked_, log.sent - log.have);
    return true;
  });
}

std::optional<bool> StreamPush::turn(Stream& stream, const LogStatus& status, Log& log,
                                     bool hold_end) {
  // Once the log is open, only this function changes `sent`.
  auto piece = source_.read(status.name, log.sent, options_.chunk);
  if (!piece) {
    trouble(piece.error().message + ", trying on");
    log.idle = true;
    log.tried = status.end;
    log.segment = status.version;
    return false;
  }
  const bool final = piece->final && !hold_end;
  // A gap without later bytes is sent together with the end, once.
  const bool only_end = piece->data.empty() && (!piece->loss || (piece->final && hold_end));
  if (only_end) {
    log.idle = true;
    log.tried = status.end;
    log.segment = status.version;
    if (!final) return false;
  } else {
    v1::PushLogsRequest request;
    v1::LogChunk& chunk = *request.mutable_chunk();
    name_it(status.name, chunk);
    chunk.set_offset(piece->offset);
    if (piece->loss) {
      chunk.mutable_gap()->set_begin(piece->loss->from);
      chunk.mutable_gap()->set_reason(piece->loss->reason);
      *chunk.mutable_gap()->mutable_at() = to_proto(piece->loss->at);
    }
    const std::uint64_t next = piece->offset + piece->data.size();
    chunk.set_data(std::move(piece->data));
    {
      // Before the write, because the answer to the write must find it.
      const MutexLock lock(mutex_);
      unacked_ += next - log.sent;
      log.sent = next;
    }
    if (!write(stream, request)) return std::nullopt;
    trouble_.over();
    if (!final) {
      const MutexLock lock(mutex_);
      return unacked_ < options_.window;
    }
  }
  v1::PushLogsRequest request;
  name_it(status.name, *request.mutable_end());
  request.mutable_end()->set_size(log.sent);
  {
    const MutexLock lock(mutex_);
    log.state = Log::State::Ended;
  }
  if (!write(stream, request)) return std::nullopt;
  return false;
}

}  // namespace

std::unique_ptr<LogPush> LogPush::start(LogPushOptions options, LogPushHooks hooks,
                                        LogSource& source) {
  return std::make_unique<StreamPush>(options, std::move(hooks), source);
}

}  // namespace muster::agent
