#include "controller/api/watch.h"

#include "controller/api/archive_read.h"
#include "controller/api/convert.h"
#include "controller/api/withhold.h"

namespace muster::controller {

void SamplePacer::wake_later(std::shared_ptr<WatchStream> stream) {
  work_.post("sample-later", [this, stream = std::move(stream)]() mutable {
    work_.assert_on();
    if (timer_ == nullptr) return;
    waiting_.push_back(std::move(stream));
    if (armed_) return;
    armed_ = true;
    timer_->arm(WatchStream::kSampleInterval, [this] {
      work_.assert_on();
      armed_ = false;
      for (const auto& waiting : std::exchange(waiting_, {})) waiting->wake();
    });
  });
}

void SamplePacer::stop() {
  work_.post("sample-stop", [this] {
    work_.assert_on();
    waiting_.clear();
    timer_.reset();
  });
}

grpc::ServerWriteReactor<v1::WatchResponse>* WatchStream::begin(Edge& edge, SamplePacer& pacer,
                                                                JobAccess access,
                                                                const v1::WatchRequest& request,
                                                                std::size_t queue_max,
                                                                Revocations::Stay stay) {
  auto stream = std::make_shared<WatchStream>(edge, pacer, std::move(access), request, queue_max,
                                              std::move(stay));
  stream->self_ = stream;
  WatchStream* const reactor = stream.get();
  if (!edge.shell.read([stream](const View& view) { stream->open(view); }))
    stream->end(overloaded());
  return reactor;
}

// Runs on the strand, when everything is durable. So the history until now and the events that
// on_events() gets later fit together without a gap.
void WatchStream::open(const View& view) {
  const JournalIndex from(request_.from_index());
  if (request_.job().empty()) keep_while_all();
  const auto attach = [&](const JobId& job) {
    {
      // If the call is cancelled already, nobody would remove the watcher. If it is cancelled
      // later, OnDone's removal comes after this on the strand.
      const MutexLock lock(mutex_);
      if (finished_) return;
    }
    const auto added = edge_.shell.add_watcher(shared_from_this(), job, access_.counted_user());
    if (!added) end({grpc::StatusCode::RESOURCE_EXHAUSTED, "watching: " + added.error().message});
  };
  if (request_.job().empty()) {
    auto history = view.history.after(from);
    if (!history) {
      end({grpc::StatusCode::OUT_OF_RANGE,
           "watching everything from index " + std::to_string(from.value) + ": events up to " +
               std::to_string(view.history.oldest().value) +
               " are no longer kept; watch from there, or from 0, or one job"});
      return;
    }
    {
      const MutexLock lock(mutex_);
      for (const auto& [id, job] : view.ledger.jobs)
        if (access_.may(job.owner)) whole_.insert(id);
      queue(*history, view.ledger);
      history_ = queue_.size();
      write_next();
    }
    attach(JobId());
    return;
  }
  const auto ref = resolve_job(view.ledger, request_.job(), RefFor::Reading);
  if (!ref) return end(rpc::to_status(ref.error()));
  if (const std::string* owner = owner_of(view.ledger, ref->id)) keep_while_whole(ref->id, *owner);
  if (!ref->archived) {
    const bool over = core::is_final(view.ledger.jobs.at(ref->id).phase);
    {
      const MutexLock lock(mutex_);
      if (access_.may(view.ledger.jobs.at(ref->id).owner)) whole_.insert(ref->id);
      queue(view.history.of_job(ref->id, from), view.ledger);
      history_ = queue_.size();
      // The job's last event may be before from_index.
      if (over && request_.until_final()) last_event_queued_ = true;
      write_next();
    }
    if (!over || !request_.until_final()) attach(ref->id);
    return;
  }
  read_archived(edge_.shell, ref->id, true,
                [stream = shared_from_this(), from](Result<ArchivedRecord> record) {
                  if (!record) return stream->end(rpc::to_status(record.error()));
                  std::erase_if(record->events, [&](const EventPtr& event) {
                    return event->index() <= from.value;
                  });
                  const MutexLock lock(stream->mutex_);
                  for (const EventPtr& event : record->events)
                    stream->queue_one(stream->shown(event, &record->job.owner));
                  stream->last_event_queued_ = true;  // nothing follows
                  stream->write_next();
                });
}

void WatchStream::keep_while_whole(const JobId& job, const std::string& owner) {
  if (!access_.may(owner)) return;  // it shows what everybody may see
  stay_.keep_while([&access = edge_.access, before = access_, id = job.str(), owner] {
    return access.again(before).check(id, owner);
  });
}

void WatchStream::keep_while_all() {
  if (!access_.may_all()) return;
  stay_.keep_while([&access = edge_.access, before = access_]() -> Result<void> {
    const JobAccess now = access.again(before);
    if (now.may_all() && (now.is_operator() || !before.is_operator())) return {};
    return fail(ErrorCode::NotAllowed,
                "watching all jobs: the access file was changed, and user '" + now.user() +
                    "' may see less of the jobs of others now; watch again to see that");
  });
}

EventPtr WatchStream::shown(const EventPtr& event, const std::string* owner) const {
  if (access_.is_socket()) return event;
  if (event->job_id().empty())
    return without_access(event, access_.is_operator(), access_.is_admin());
  // An empty owner is the user who runs the controller. A job that is forgotten may be anybody's.
  if (owner == nullptr ? access_.may_all() : access_.may(*owner)) return event;
  return withheld(*event, owner == nullptr ? "another user's job"
                                           : "a job of user '" + access_.owner_text(*owner) + "'");
}

void WatchStream::queue(std::span<const EventPtr> events, const core::Ledger& ledger) {
  for (const EventPtr& event : events) {
    const JobId job(event->job_id());
    const std::string* owner = owner_of(ledger, job);
    if (event->type() == "job-archived") {
      whole_.erase(job);
    } else if (event->type() == "job-submitted" && owner != nullptr && access_.may(*owner)) {
      whole_.insert(job);
    }
    queue_one(shown(event, owner));
  }
}

void WatchStream::queue_one(EventPtr event) {
  if (last_event_queued_) return;
  if (request_.until_final() && !request_.job().empty() && event->type() == "job-ended")
    last_event_queued_ = true;
  queue_.push_back(std::move(event));
}

void WatchStream::on_events(std::span<const EventPtr> events, const View& view) {
  const MutexLock lock(mutex_);
  if (queue_.size() + events.size() > queue_max_ + history_ && !ending_) {
    ending_ =
        grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "watching: this watcher does not keep up, " + std::to_string(queue_.size()) +
                         " events wait; resume with from_index=" + std::to_string(written_index_));
    queue_.clear();
  } else {
    queue(events, view.ledger);
  }
  write_next();
}

void WatchStream::on_reading(const JobId& job, const core::Presence& presence) {
  if (!request_.samples()) return;
  auto progress = progress_of(presence, job);
  if (!progress) return;
  const MutexLock lock(mutex_);
  if (!whole_.contains(job)) {
    progress->clear_loss();
    progress->clear_loss_not_finite();
  }
  samples_[job] = std::move(*progress);
  write_next();
}

void WatchStream::wake() {
  const MutexLock lock(mutex_);
  pacing_ = false;
  write_next();
}

void WatchStream::end(grpc::Status status) {
  const MutexLock lock(mutex_);
  if (!ending_) ending_ = std::move(status);
  write_next();
}

void WatchStream::write_next() {
  if (writing_ || finished_) return;
  if (ending_) {
    finished_ = true;
    Finish(*ending_);
    return;
  }
  outgoing_.Clear();
  if (!queue_.empty()) {
    *outgoing_.mutable_event() = *queue_.front();
    written_index_ = queue_.front()->index();
    queue_.pop_front();
  } else if (last_event_queued_) {
    finished_ = true;
    Finish(grpc::Status::OK);
    return;
  } else if (!samples_.empty()) {
    const BootTime now = edge_.shell.now().boot;
    if (now - last_sample_ < kSampleInterval) {
      if (!std::exchange(pacing_, true)) pacer_.wake_later(shared_from_this());
      return;
    }
    auto sample = samples_.extract(samples_.begin());
    outgoing_.mutable_sample()->set_job_id(sample.key().str());
    *outgoing_.mutable_sample()->mutable_progress() = std::move(sample.mapped());
    if (samples_.empty()) last_sample_ = now;  // one round over all jobs in each interval
  } else {
    return;
  }
  writing_ = true;
  StartWrite(&outgoing_);
}

void WatchStream::OnWriteDone(bool ok) {
  const MutexLock lock(mutex_);
  writing_ = false;
  if (!ok && !ending_) ending_ = grpc::Status::CANCELLED;
  write_next();
}

void WatchStream::OnCancel() { end(grpc::Status::CANCELLED); }

void WatchStream::OnDone() {
  stay_.leave();
  edge_.shell.remove_watcher(this);
  const auto last = std::move(self_);
}

}  // namespace muster::controller
