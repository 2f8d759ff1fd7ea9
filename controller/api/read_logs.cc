#include "controller/api/read_logs.h"

#include <algorithm>

#include "controller/api/archive_read.h"

namespace muster::controller {

// --- followers -------------------------------------------------------------------------------------------------------------------------

LogFollowers::LogFollowers(Edge& edge) : edge_(edge) {
  edge.logs.on_change([this](const logs::LogKey& key) { changed(key); });
}

void LogFollowers::changed(const logs::LogKey& key) {
  {
    const std::lock_guard lock(mutex_);
    if (!followed_.contains(key.job)) return;
    const bool on_its_way = !changed_.empty();
    changed_.insert(key);
    if (on_its_way) return;
  }
  edge_.work.post("log-change", [this] { wake(); });
}

void LogFollowers::wake() {
  std::set<logs::LogKey> keys;
  {
    const std::lock_guard lock(mutex_);
    keys.swap(changed_);
  }
  for (const logs::LogKey& key : keys) {
    // A stream may remove itself while it is told.
    std::vector<std::shared_ptr<LogStream>> streams;
    for (auto [at, end] = streams_.equal_range(key.job); at != end; ++at) streams.push_back(at->second->shared_from_this());
    for (const auto& stream : streams) stream->on_log(key.attempt, key.rank);
  }
}

void LogFollowers::remove(const JobId& job, const LogStream* stream) {
  for (auto [at, end] = streams_.equal_range(job); at != end; ++at) {
    if (at->second != stream) continue;
    streams_.erase(at);
    break;
  }
  const std::lock_guard lock(mutex_);
  const auto followed = followed_.find(job);
  if (followed != followed_.end() && --followed->second == 0) followed_.erase(followed);
}

// --- what there is to read -------------------------------------------------------------------------------------------------------------

LogSources log_sources(const core::JobRecord& job, const core::Presence& presence) {
  LogSources sources{.job = job.id, .final = core::is_final(job.phase)};
  for (const core::AttemptRecord& attempt : job.attempts) {
    std::vector<LogSources::Part>& parts = sources.attempts[attempt.number];
    for (const core::NodePart& part : attempt.parts) {
      if (part.idle()) continue;
      parts.push_back({.node = part.placed.node,
                       .first = part.placed.first_rank,
                       .count = part.placed.rank_count,
                       .there = !part.logs_collected && core::is_connected(presence, part.placed.node)});
    }
  }
  return sources;
}

template <class Work>
void LogStream::post(const char* name, Work work) {
  edge_.work.post(name, [self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* LogStream::begin(Edge& edge, LogFollowers& followers, const v1::ReadLogsRequest& request) {
  auto stream = std::make_shared<LogStream>(edge, followers, request);
  stream->self_ = stream;
  LogStream* const reactor = stream.get();
  if (!edge.shell.read([stream](const View& view) { stream->open(view); })) stream->post("logs-refused", [](LogStream& self) { self.finish(overloaded()); });
  return reactor;
}

void LogStream::open(const View& view) {
  const auto ref = resolve_job(view.ledger, request_.job());
  if (!ref) return post("logs-refused", [status = rpc::to_status(ref.error())](LogStream& self) { self.finish(status); });
  if (ref->archived) {
    read_archived(edge_.shell, ref->id, false, [stream = shared_from_this()](Result<ArchivedRecord> record) {
      if (!record) return stream->post("logs-refused", [status = rpc::to_status(record.error())](LogStream& self) { self.finish(status); });
      stream->post("logs-open", [found = log_sources(record->job, core::Presence())](LogStream& self) { self.sources(found); });
    });
    return;
  }
  if (request_.follow() && !edge_.shell.add_watcher(shared_from_this(), ref->id)) {
    return post("logs-refused", [](LogStream& self) {
      self.finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "following logs: too many watchers are connected; end some of them"});
    });
  }
  post("logs-open", [found = log_sources(view.ledger.jobs.at(ref->id), view.presence)](LogStream& self) { self.sources(found); });
}

// Attempts, phases and collected logs change with the job's events.
void LogStream::on_events(std::span<const EventPtr> events, const View& view) {
  const auto job = view.ledger.jobs.find(JobId(events.front()->job_id()));
  if (job == view.ledger.jobs.end()) return;
  post("logs-job", [found = log_sources(job->second, view.presence)](LogStream& self) { self.sources(found); });
}

void LogStream::on_presence(const core::Presence& presence) {
  std::set<NodeName> connected;
  for (const auto& [name, seen] : presence.nodes) {
    if (seen.connection.value != 0) connected.insert(name);
  }
  post("logs-presence", [connected = std::move(connected)](LogStream& self) {
    for (auto& [key, cursor] : self.cursors_) cursor.there = connected.contains(cursor.node);
    self.pump();
  });
}

// --- on the work loop --------------------------------------------------------------------------------------------------------------------

bool LogStream::wanted(AttemptNo attempt) const {
  if (request_.all_attempts()) return true;
  if (request_.attempt() != 0) return attempt.value == request_.attempt();
  return request_.follow() ? attempt >= first_attempt_ : attempt == first_attempt_;
}

void LogStream::sources(LogSources sources) {
  if (finished_) return;
  job_ = sources.job;
  if (!opened_) {
    opened_ = true;
    if (!sources.attempts.empty()) first_attempt_ = sources.attempts.rbegin()->first;
    if (request_.attempt() != 0 && !request_.all_attempts() && !sources.attempts.contains(AttemptNo(request_.attempt()))) {
      const bool may_come = request_.follow() && !sources.final;
      if (!may_come) {
        return finish({grpc::StatusCode::NOT_FOUND, "reading logs of job '" + job_.str() + "': it has no attempt " + std::to_string(request_.attempt()) +
                                                        ", the last is " + std::to_string(first_attempt_.value)});
      }
    }
    if (request_.follow()) {
      registered_ = true;
      {
        const std::lock_guard lock(followers_.mutex_);
        ++followers_.followed_[job_];
      }
      followers_.add(job_, this);
    }
  }
  final_ = final_ || sources.final;
  const std::set<std::uint32_t> ranks(request_.ranks().begin(), request_.ranks().end());
  for (const auto& [attempt, parts] : sources.attempts) {
    if (!wanted(attempt)) continue;
    for (const LogSources::Part& part : parts) {
      if (!request_.node().empty() && request_.node() != part.node.str()) continue;
      for (std::uint32_t i = 0; i < part.count; ++i) {
        const RankNo rank(part.first.value + i);
        if (!ranks.empty() && !ranks.contains(rank.value)) continue;
        auto [entry, fresh] = cursors_.try_emplace({attempt, rank});
        entry->second.there = part.there;
        if (!fresh) continue;
        entry->second.node = part.node;
        // Offset and tail are about what was there when the reader came; what begins later is read from its beginning.
        const bool first = attempt <= first_attempt_;
        entry->second.offset = first ? request_.offset() : 0;
        entry->second.begun = !first || request_.tail_lines() == 0;
        ready_.insert(entry->first);
      }
    }
  }
  pump();
}

void LogStream::on_log(AttemptNo attempt, RankNo rank) {
  const Key key(attempt, rank);
  if (!cursors_.contains(key)) return;
  ready_.insert(key);
  pump();
}

void LogStream::pump() {
  if (writing_ || finished_ || !opened_) return;
  while (!ready_.empty()) {
    // The oldest attempt first; within it each rank in its turn.
    const AttemptNo attempt = ready_.begin()->first;
    auto next = ready_.upper_bound(last_);
    if (last_.first != attempt || next == ready_.end() || next->first != attempt) next = ready_.begin();
    const Key key = *next;
    if (write_some(key, cursors_.at(key))) return;
    if (finished_) return;
    ready_.erase(key);
  }
  const bool all_in = std::ranges::all_of(cursors_, [](const auto& entry) { return entry.second.complete || !entry.second.there; });
  if (!request_.follow() || (final_ && all_in)) finish(grpc::Status::OK);
}

bool LogStream::write_some(const Key& key, Cursor& cursor) {
  const logs::LogKey log{.job = job_, .attempt = key.first, .rank = key.second};
  if (!cursor.begun) {
    auto tail = edge_.logs.tail(log, request_.tail_lines());
    if (!tail) return finish(rpc::to_status(tail.error())), false;
    cursor.offset = *tail;
    cursor.begun = true;
  }
  // Asked before the read: complete then means that the read sees the end.
  const auto state = edge_.logs.state(log);
  if (!state) return finish(rpc::to_status(state.error())), false;
  auto chunk = edge_.logs.read(log, cursor.offset, kChunkMax);
  if (!chunk) return finish(rpc::to_status(chunk.error())), false;
  if (chunk->data.empty() && !chunk->gap_before) {
    cursor.complete = state->complete;
    return false;
  }
  outgoing_.Clear();
  outgoing_.set_attempt(key.first.value);
  outgoing_.set_rank(key.second.value);
  outgoing_.set_node(cursor.node.str());
  outgoing_.set_offset(chunk->offset);
  if (chunk->gap_before) {
    outgoing_.set_gap(chunk->gap_before->reason.empty() ? "bytes are missing" : chunk->gap_before->reason);
    const auto since = chunk->gap_before->at.time_since_epoch();
    outgoing_.mutable_at()->set_seconds(std::chrono::floor<std::chrono::seconds>(since).count());
  }
  cursor.offset = chunk->offset + chunk->data.size();
  *outgoing_.mutable_data() = std::move(chunk->data);
  last_ = key;
  writing_ = true;
  StartWrite(&outgoing_);
  return true;
}

void LogStream::finish(grpc::Status status) {
  if (finished_) return;
  finished_ = true;
  Finish(std::move(status));
}

// --- gRPC's threads ----------------------------------------------------------------------------------------------------------------------

void LogStream::OnWriteDone(bool ok) {
  post("logs-written", [ok](LogStream& self) {
    self.writing_ = false;
    if (!ok) self.finish(grpc::Status::CANCELLED);
    self.pump();
  });
}

void LogStream::OnCancel() {
  post("logs-cancel", [](LogStream& self) { self.finish(grpc::Status::CANCELLED); });
}

void LogStream::OnDone() {
  post("logs-done", [](LogStream& self) {
    if (self.registered_) self.followers_.remove(self.job_, &self);
    self.edge_.shell.remove_watcher(&self);
    const auto last = std::move(self.self_);
  });
}

}  // namespace muster::controller
