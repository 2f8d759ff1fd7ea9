#include "controller/api/read_logs.h"

#include <algorithm>
#include <utility>

#include "common/proto/proto_time.h"
#include "controller/api/archive_read.h"

namespace muster::controller {

// --- followers -----------------------------------------------------------------------------------

LogFollowers::LogFollowers(Edge& edge) : edge_(edge) {
  edge.logs.on_change([this](const logs::LogKey& key) { changed(key); });
}

void LogFollowers::changed(const logs::LogKey& key) {
  {
    const MutexLock lock(mutex_);
    if (!followed_.contains(key.job)) return;
    const bool on_its_way = !changed_.empty();
    changed_.insert(key);
    if (on_its_way) return;
  }
  edge_.work.post("log-change", [this] { wake(); });
}

void LogFollowers::wake() {
  edge_.work.assert_on();
  std::set<logs::LogKey> keys;
  {
    const MutexLock lock(mutex_);
    keys.swap(changed_);
  }
  for (const logs::LogKey& key : keys) {
    // A stream may remove itself while it is notified.
    std::vector<std::shared_ptr<LogStream>> streams;
    for (auto [at, end] = streams_.equal_range(key.job); at != end; ++at)
      streams.push_back(at->second->shared_from_this());
    for (const auto& stream : streams) stream->on_log(key);
  }
}

void LogFollowers::add(const JobId& job, LogStream* stream) {
  edge_.work.assert_on();
  streams_.emplace(job, stream);
  const MutexLock lock(mutex_);
  ++followed_[job];
}

void LogFollowers::remove(const JobId& job, const LogStream* stream) {
  edge_.work.assert_on();
  for (auto [at, end] = streams_.equal_range(job); at != end; ++at) {
    if (at->second != stream) continue;
    streams_.erase(at);
    break;
  }
  const MutexLock lock(mutex_);
  const auto followed = followed_.find(job);
  if (followed != followed_.end() && --followed->second == 0) followed_.erase(followed);
}

// --- the stream ----------------------------------------------------------------------------------

template <class Work>
void LogStream::post(const char* name, Work work) {
  edge_.work.post(name,
                  [self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* LogStream::begin(Edge& edge,
                                                                 LogFollowers& followers,
                                                                 JobAccess access,
                                                                 const v1::ReadLogsRequest& request,
                                                                 Revocations::Stay stay) {
  auto stream =
      std::make_shared<LogStream>(edge, followers, std::move(access), request, std::move(stay));
  stream->self_ = stream;
  LogStream* const reactor = stream.get();
  if (!edge.shell.read([stream](const View& view) { stream->open(view); }))
    stream->post("logs-refused", [](LogStream& self) { self.finish(overloaded()); });
  return reactor;
}

bool LogStream::may_read(const core::JobRecord& job) {
  const auto allowed = access_.check(job.id.str(), job.owner);
  if (!allowed)
    post("logs-refused",
         [status = rpc::to_status(allowed.error())](LogStream& self) { self.finish(status); });
  if (allowed)
    stay_.keep_while([&access = edge_.access, before = access_, id = job.id.str(),
                      owner = job.owner] { return access.again(before).check(id, owner); });
  return allowed.has_value();
}

void LogStream::open(const View& view) {
  // If the call is cancelled already, nobody would remove the watcher. If it is cancelled later,
  // OnDone's removal comes after this on the strand.
  if (cancelled_) return;
  const auto ref = resolve_job(view.ledger, request_.job(), RefFor::Reading);
  if (!ref)
    return post("logs-refused",
                [status = rpc::to_status(ref.error())](LogStream& self) { self.finish(status); });
  if (ref->archived) {
    read_archived(
        edge_.shell, ref->id, false, [stream = shared_from_this()](Result<ArchivedRecord> record) {
          if (!record)
            return stream->post("logs-refused", [status = rpc::to_status(record.error())](
                                                    LogStream& self) { self.finish(status); });
          if (!stream->may_read(record->job)) return;
          stream->post("logs-open", [found = log_sources(record->job, core::Presence())](
                                        LogStream& self) { self.sources(found); });
        });
    return;
  }
  if (!may_read(view.ledger.jobs.at(ref->id))) return;
  const bool is_final = core::is_final(view.ledger.jobs.at(ref->id).phase);
  if (request_.follow() || is_final) {
    auto added = edge_.shell.add_watcher(shared_from_this(), ref->id, access_.counted_user());
    if (!added && request_.follow()) {
      return post("logs-refused", [why = std::move(added).error().message](LogStream& self) {
        self.finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "following logs: " + why});
      });
    }
  }
  post("logs-open", [found = log_sources(view.ledger.jobs.at(ref->id), view.presence)](
                        LogStream& self) { self.sources(found); });
}

// A job's events change its attempts, its phase and the collected logs.
void LogStream::on_events(std::span<const EventPtr> events, const View& view) {
  const auto job = view.ledger.jobs.find(JobId(events.front()->job_id()));
  if (job == view.ledger.jobs.end()) return;
  post("logs-job",
       [found = log_sources(job->second, view.presence)](LogStream& self) { self.sources(found); });
}

void LogStream::on_presence(const core::Presence& presence) {
  std::set<NodeName> connected;
  for (const auto& [name, seen] : presence.nodes) {
    if (seen.connection.value != 0) connected.insert(name);
  }
  post("logs-presence", [connected = std::move(connected)](LogStream& self) {
    self.edge_.work.assert_on();
    for (auto& [log, cursor] : self.cursors_) cursor.part.there = connected.contains(cursor.node);
    for (auto& [part, seen] : self.parts_) seen.there = connected.contains(part.second);
    self.pump();
  });
}

// --- on the work loop ----------------------------------------------------------------------------

bool LogStream::wanted(AttemptNo attempt) const {
  if (request_.all_attempts()) return true;
  if (request_.attempt() != 0) return attempt.value == request_.attempt();
  return request_.follow() ? attempt >= first_attempt_ : attempt == first_attempt_;
}

std::vector<AttemptNo> LogStream::chosen(const LogSources& sources) const {
  std::vector<AttemptNo> attempts;
  for (const auto& [attempt, parts] : sources.attempts) {
    if (wanted(attempt)) attempts.push_back(attempt);
  }
  return attempts;
}

bool LogStream::refuse_missing(const LogSources& sources) {
  const std::vector<AttemptNo> attempts = chosen(sources);
  if (attempts.empty()) {
    // The attempt is not placed yet, so there is nothing to read and no error. It may still come as
    // long as the job continues.
    const bool may_come = request_.follow() && !sources.final;
    if (request_.attempt() == 0 || request_.all_attempts() || may_come) return false;
  } else if (std::exchange(checked_, true)) {
    return false;  // a later attempt may be placed elsewhere
  }
  const auto missing = missing_logs(sources, attempts, request_);
  if (missing) finish({grpc::StatusCode::NOT_FOUND, *missing});
  return missing.has_value();
}

// Reads the store's list once, when the stream opens. Followers are notified of logs that begin
// later.
bool LogStream::find_auxiliaries(const LogSources& sources) {
  if (!choice_.any_auxiliaries()) return false;
  std::set<std::string> there;
  std::vector<logs::LogKey> found;
  for (logs::LogKey& log : edge_.logs.list(job_)) {
    if (log.auxiliary.empty() || !wanted(log.attempt)) continue;
    there.insert(log.auxiliary);
    found.push_back(std::move(log));
  }
  if (const auto missing = missing_auxiliaries(sources, std::move(there), choice_)) {
    finish({grpc::StatusCode::NOT_FOUND, *missing});
    return true;
  }
  for (const logs::LogKey& log : found) add_auxiliary(log, true);
  return false;
}

void LogStream::add_auxiliary(const logs::LogKey& log, bool was_there) {
  if (!choice_.auxiliary(log.auxiliary)) return;
  const auto part = parts_.find({log.attempt, log.node});
  if (part != parts_.end()) add(log, log.node, part->second, was_there);
}

// Offset, tail and since apply to what existed when the reader came. A log that begins later is
// read from its beginning.
void LogStream::add(const logs::LogKey& log, const NodeName& node, const PartSeen& part,
                    bool was_there) {
  auto [entry, fresh] = cursors_.try_emplace(log);
  entry->second.part = part;
  if (!fresh) return;
  entry->second.node = node;
  entry->second.offset = was_there ? request_.offset() : 0;
  entry->second.begun = !was_there || (request_.tail_lines() == 0 && !request_.has_since());
  ready_.insert(log);
}

void LogStream::sources(LogSources sources) {
  edge_.work.assert_on();
  if (finished_) return;
  job_ = sources.job;
  if (!opened_ && !sources.attempts.empty()) first_attempt_ = sources.attempts.rbegin()->first;
  if (!ranks_found_) {
    const std::vector<AttemptNo> attempts = chosen(sources);
    ranks_found_ = !attempts.empty();
    find_training_ranks(sources, attempts, request_);
    choice_ = LogChoice(request_);
  }
  if (refuse_missing(sources)) return;
  const bool opening = !std::exchange(opened_, true);
  if (opening && (request_.follow() || sources.final)) {
    registered_ = true;
    followers_.add(job_, this);
  }
  if (opening && sources.final && !request_.follow()) {
    late_.emplace(edge_.work, "logs-late");
    late_->arm(kLateMost, [stream = weak_from_this()] {
      const auto self = stream.lock();
      if (!self) return;
      self->edge_.work.assert_on();
      self->late_.reset();
      self->pump();
    });
  }
  final_ = final_ || sources.final;
  for (const auto& [attempt, parts] : sources.attempts) {
    if (!wanted(attempt)) continue;
    for (const LogSources::Part& part : parts) {
      if (!wanted(part.node)) continue;
      const PartSeen seen{.there = part.there, .collected = part.collected};
      if (choice_.any_auxiliaries()) parts_[{attempt, part.node}] = seen;
      if (choice_.failed_setups && part.start_failed &&
          sources.node_logs.contains(std::string(kSetupLog))) {
        add({job_, attempt, RankNo(0), std::string(kSetupLog), part.node}, part.node, seen,
            opening);
      }
      for (std::uint32_t i = 0; choice_.ranks && i < part.count; ++i) {
        const RankNo rank(part.first.value + i);
        if (choice_.chosen_ranks.empty() || choice_.chosen_ranks.contains(rank.value))
          add({job_, attempt, rank}, part.node, seen, attempt <= first_attempt_);
      }
    }
  }
  if (opening && find_auxiliaries(sources)) return;
  for (auto& [log, cursor] : cursors_) {
    if (const auto part = parts_.find({log.attempt, log.node}); part != parts_.end())
      cursor.part = part->second;
  }
  pump();
}

void LogStream::on_log(const logs::LogKey& log) {
  edge_.work.assert_on();
  if (!log.auxiliary.empty() && opened_ && wanted(log.attempt)) add_auxiliary(log, false);
  if (!cursors_.contains(log)) return;
  ready_.insert(log);
  pump();
}

void LogStream::pump() {
  edge_.work.assert_on();
  if (writing_ || finished_ || !opened_) return;
  while (!ready_.empty()) {
    // The oldest attempt first; within it, the logs take turns.
    const AttemptNo attempt = ready_.begin()->attempt;
    auto next = ready_.upper_bound(last_);
    if (last_.attempt != attempt || next == ready_.end() || next->attempt != attempt)
      next = ready_.begin();
    const logs::LogKey log = *next;
    if (write_some(log, cursors_.at(log))) return;
    if (finished_) return;
    ready_.erase(log);
  }
  const bool all_in =
      std::ranges::all_of(
          cursors_,
          [](const auto& entry) { return entry.second.complete || entry.second.part.over(); }) &&
      std::ranges::all_of(parts_, [](const auto& entry) { return entry.second.over(); });
  if ((!request_.follow() && !late_) || (final_ && all_in)) finish(grpc::Status::OK);
}

bool LogStream::begin_at(const logs::LogKey& log, Cursor& cursor) {
  const auto skip_to = [&](const Result<std::uint64_t>& offset) {
    if (!offset) return finish(rpc::to_status(offset.error())), false;
    cursor.offset = std::max(cursor.offset, *offset);
    return true;
  };
  if (request_.tail_lines() > 0 && !skip_to(edge_.logs.tail(log, request_.tail_lines())))
    return false;
  if (request_.has_since()) {
    const WallTime since = to_wall(request_.since());
    if (!skip_to(edge_.logs.since(log, since))) return false;
  }
  cursor.begun = true;
  return true;
}

bool LogStream::write_some(const logs::LogKey& log, Cursor& cursor) {
  if (!cursor.begun && !begin_at(log, cursor)) return false;
  // Read before the data: then `complete` means that the read reaches the end.
  const auto state = edge_.logs.state(log);
  if (!state) return finish(rpc::to_status(state.error())), false;
  auto chunk = edge_.logs.read(log, cursor.offset, kChunkMax);
  if (!chunk) return finish(rpc::to_status(chunk.error())), false;
  if (chunk->data.empty() && !chunk->gap_before) {
    cursor.complete = state->complete;
    return false;
  }
  outgoing_.Clear();
  outgoing_.set_attempt(log.attempt.value);
  if (log.auxiliary.empty()) {
    outgoing_.set_rank(log.rank.value);
  } else {
    outgoing_.set_node_log(log.auxiliary);
  }
  outgoing_.set_node(cursor.node.str());
  outgoing_.set_offset(chunk->offset);
  if (chunk->gap_before) {
    outgoing_.set_gap(chunk->gap_before->reason.empty() ? "bytes are missing"
                                                        : chunk->gap_before->reason);
    *outgoing_.mutable_at() =
        to_proto(std::chrono::floor<std::chrono::seconds>(chunk->gap_before->at));
  }
  cursor.offset = chunk->offset + chunk->data.size();
  *outgoing_.mutable_data() = std::move(chunk->data);
  last_ = log;
  writing_ = true;
  StartWrite(&outgoing_);
  return true;
}

void LogStream::finish(grpc::Status status) {
  edge_.work.assert_on();
  if (finished_) return;
  finished_ = true;
  late_.reset();
  Finish(std::move(status));
}

// --- gRPC's threads ------------------------------------------------------------------------------

void LogStream::OnWriteDone(bool ok) {
  post("logs-written", [ok](LogStream& self) {
    self.edge_.work.assert_on();
    self.writing_ = false;
    if (!ok) self.finish(grpc::Status::CANCELLED);
    self.pump();
  });
}

void LogStream::OnCancel() {
  cancelled_ = true;
  post("logs-cancel", [](LogStream& self) { self.finish(grpc::Status::CANCELLED); });
}

void LogStream::OnDone() {
  stay_.leave();
  post("logs-done", [](LogStream& self) {
    self.edge_.work.assert_on();
    if (self.registered_) self.followers_.remove(self.job_, &self);
    self.edge_.shell.remove_watcher(&self);
    const auto last = std::move(self.self_);
  });
}

}  // namespace muster::controller
