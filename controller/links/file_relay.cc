#include "controller/links/file_relay.h"

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <random>
#include <utility>

namespace muster::controller {
namespace {

std::string new_ticket() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// A message without bytes uses memory as well.
std::size_t cost(const v1::FilePart& part) {
  return part.data().size() + part.begin().path().size() + 256;
}

}  // namespace

class FileTransfer final : public std::enable_shared_from_this<FileTransfer> {
 public:
  struct Taker final : FileRelay::Taker {
    Taker(grpc::CallbackServerContext& call, Revocations::Stay until_done)
        : context(call), stay(std::move(until_done)) {}
    grpc::CallbackServerContext& context;  // until OnDone
    FileTransferPtr transfer;
    Revocations::Stay stay;
    void OnWriteDone(bool ok) override { transfer->written(ok); }
    void OnCancel() override {
      transfer->end({grpc::StatusCode::CANCELLED, "the node that asked has gone"});
    }
    void OnDone() override {
      const FileTransferPtr last = std::move(transfer);
      last->taker_done();
      delete this;
    }
  };
  struct Giver final : FileRelay::Giver {
    Giver(std::weak_ptr<FileRelay::Book> of, rpc::Caller who,
          std::function<void(const Error&)> refused, Revocations::Stay until_done)
        : book(std::move(of)),
          caller(std::move(who)),
          on_refused(std::move(refused)),
          stay(std::move(until_done)) {}
    void OnReadDone(bool ok) override;
    void OnDone() override {
      if (transfer) transfer->giver_done();
      delete this;
    }
    std::weak_ptr<FileRelay::Book> book;
    const rpc::Caller caller;
    const std::function<void(const Error&)> on_refused;
    const Revocations::Stay stay;
    FileTransferPtr transfer;  // set from the ticket on
    v1::SendFilesRequest incoming;
  };

  explicit FileTransfer(std::shared_ptr<FileRelay::Book> book) : book_(std::move(book)) {}

  FileRelay::Taker* take(grpc::CallbackServerContext& context, Revocations::Stay stay) {
    const MutexLock lock(mutex_);
    taker_ = new Taker(context, std::move(stay));
    taker_->transfer = shared_from_this();
    return taker_;
  }

  std::optional<std::string> open(const FileRelay::Asker& asker, const NodeName& source,
                                  const InstanceId& instance) {
    std::string ticket = new_ticket();
    FileTransferPtr before;
    {
      const MutexLock lock(book_->mutex);
      const auto known = book_->tickets.find(asker);
      if (known != book_->tickets.end()) {
        const auto replaced = book_->open.extract(known->second);
        before = replaced.mapped().lock();
        known->second = ticket;
      } else {
        if (book_->tickets.size() >= book_->most) return std::nullopt;
        book_->tickets.emplace(asker, ticket);
      }
      book_->open[ticket] = weak_from_this();
    }
    if (before) before->end_replaced();
    // True if the asking agent left before it was judged: then only this function removes the
    // entry.
    bool gone = false;
    {
      const MutexLock lock(mutex_);
      ticket_ = ticket;
      asker_ = asker;
      source_ = source;
      instance_ = instance;
      gone = taker_ == nullptr;
    }
    if (gone) close(ticket, asker);
    return ticket;
  }

  // The first end counts; an end after FilesEnd changes nothing.
  void end(const grpc::Status& why) {
    const MutexLock lock(mutex_);
    end_locked(why);
  }

  // An agent that does not read keeps what waits for it, and its end, until the call is cancelled.
  void end_if_of(const core::AttemptKey& attempt) {
    const MutexLock lock(mutex_);
    if (asker_.attempt != attempt) return;
    end_locked({grpc::StatusCode::CANCELLED, "the attempt is over"});
    if (taker_ != nullptr && writing_) taker_->context.TryCancel();
  }

  void end_replaced() {
    const MutexLock lock(mutex_);
    end_locked({grpc::StatusCode::CANCELLED, "the node has asked again"});
    if (taker_ != nullptr) taker_->context.TryCancel();
  }

  void end_if_waiting_for(const NodeName& node) {
    const MutexLock lock(mutex_);
    if (source_ != node || giver_ != nullptr || whole_) return;
    end_locked({grpc::StatusCode::UNAVAILABLE,
                "the node's agent has gone before it sent any; look after that node"});
  }

  // Returns false if this transfer is not for this sender, or another stream already sends it.
  bool attach(Giver* giver, const v1::FilesTicket& ticket) {
    const MutexLock lock(mutex_);
    if (giver_ != nullptr || over_ || whole_ || source_.str() != ticket.node() ||
        instance_.str() != ticket.instance())
      return false;
    giver_ = giver;
    return true;
  }

  // Takes a part from the sender. The next read starts only if there is room.
  void came(v1::FilePart part) {
    const MutexLock lock(mutex_);
    reading_ = false;
    if (over_ || giver_ == nullptr) return;
    if (part.has_failed())
      return end_locked({grpc::StatusCode::FAILED_PRECONDITION, part.failed().text()});
    whole_ = part.has_end();
    buffered_ += cost(part);
    v1::FetchFilesResponse& last = queue_.emplace_back();
    *last.mutable_part() = std::move(part);
    go_on();
  }

  void cut_off() {
    const MutexLock lock(mutex_);
    reading_ = false;
    if (!whole_) {
      end_locked({grpc::StatusCode::UNAVAILABLE,
                  "the node was cut off while it sent; another start fetches all of it anew"});
    }
    finish_giver(grpc::Status::OK);
  }

  void written(bool ok) {
    const MutexLock lock(mutex_);
    writing_ = false;
    buffered_ -= cost(queue_.front().part());
    queue_.pop_front();
    if (!ok) end_locked({grpc::StatusCode::CANCELLED, "the node that asked has gone"});
    go_on();
  }

  void taker_done() {
    std::string ticket;
    FileRelay::Asker asker;
    {
      const MutexLock lock(mutex_);
      taker_ = nullptr;
      ticket = ticket_;
      asker = asker_;
      end_locked({grpc::StatusCode::CANCELLED, "the node that asked has gone"});
    }
    close(ticket, asker);
  }
  void giver_done() {
    const MutexLock lock(mutex_);
    giver_ = nullptr;
  }
  // Starts the first read after attach().
  void read_first() {
    const MutexLock lock(mutex_);
    go_on();
  }

 private:
  // Does nothing if another transfer has replaced this one.
  void close(const std::string& ticket, const FileRelay::Asker& asker) {
    const MutexLock lock(book_->mutex);
    if (book_->open.erase(ticket) > 0) book_->tickets.erase(asker);
  }
  void end_locked(const grpc::Status& why) MUSTER_REQUIRES(mutex_) {
    if (over_) return;
    // all parts have been read and are being written
    if (whole_ && !why.ok() && taker_ != nullptr && !queue_.empty() &&
        why.error_code() != grpc::StatusCode::CANCELLED)
      return;
    over_ = why;
    go_on();
  }
  void finish_giver(const grpc::Status& status) MUSTER_REQUIRES(mutex_) {
    if (giver_ != nullptr && !std::exchange(giver_finished_, true)) giver_->Finish(status);
  }
  void finish_taker(const grpc::Status& status) MUSTER_REQUIRES(mutex_) {
    if (taker_ != nullptr && !writing_ && !std::exchange(taker_finished_, true))
      taker_->Finish(status);
  }
  void go_on() MUSTER_REQUIRES(mutex_) {
    if (over_) {
      finish_taker(*over_);
      finish_giver(*over_);
      return;
    }
    if (taker_ != nullptr && !writing_ && !queue_.empty()) {
      writing_ = true;
      taker_->StartWrite(&queue_.front());
    }
    if (whole_) {
      if (queue_.empty()) finish_taker(grpc::Status::OK);
      finish_giver(grpc::Status::OK);
      return;
    }
    if (giver_ != nullptr && !giver_finished_ && !reading_ &&
        buffered_ < FileRelay::kBufferedBytes) {
      reading_ = true;
      giver_->incoming.Clear();
      giver_->StartRead(&giver_->incoming);
    }
  }

  const std::shared_ptr<FileRelay::Book> book_;
  Mutex mutex_;  // never locked while the book's mutex is locked
  std::string ticket_ MUSTER_GUARDED_BY(mutex_);
  FileRelay::Asker asker_ MUSTER_GUARDED_BY(mutex_);
  NodeName source_ MUSTER_GUARDED_BY(mutex_);
  InstanceId instance_ MUSTER_GUARDED_BY(mutex_);
  Taker* taker_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  Giver* giver_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  // while writing_, gRPC uses its front
  std::deque<v1::FetchFilesResponse> queue_ MUSTER_GUARDED_BY(mutex_);
  std::size_t buffered_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool writing_ MUSTER_GUARDED_BY(mutex_) = false, reading_ MUSTER_GUARDED_BY(mutex_) = false;
  bool whole_ MUSTER_GUARDED_BY(mutex_) = false;
  bool taker_finished_ MUSTER_GUARDED_BY(mutex_) = false;
  bool giver_finished_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> over_ MUSTER_GUARDED_BY(mutex_);
};

void FileTransfer::Giver::OnReadDone(bool ok) {
  if (transfer) {
    if (ok && incoming.has_part())
      transfer->came(std::move(*incoming.mutable_part()));
    else
      transfer->cut_off();
    return;
  }
  if (!ok || !incoming.has_ticket())
    return Finish({grpc::StatusCode::INVALID_ARGUMENT, "sending files: the ticket is first"});
  if (auto own = rpc::speaks_for(caller, NodeName(incoming.ticket().node()),
                                 "sending files to another node");
      !own) {
    if (on_refused) on_refused(own.error());
    return Finish(rpc::to_refusal(own.error()));
  }
  FileTransferPtr found;
  if (const auto there = book.lock()) {
    const MutexLock lock(there->mutex);
    if (const auto entry = there->open.find(incoming.ticket().ticket()); entry != there->open.end())
      found = entry->second.lock();
  }
  transfer = found;
  if (!found || !found->attach(this, incoming.ticket())) {
    transfer.reset();
    return Finish({grpc::StatusCode::NOT_FOUND, "sending files: nobody waits for them any more"});
  }
  found->read_first();
}

FileRelay::Taker* FileRelay::fetch(grpc::CallbackServerContext& context,
                                   const std::function<void(FileTransferPtr)>& judge,
                                   Revocations::Stay stay) {
  const auto transfer = std::make_shared<FileTransfer>(book_);
  Taker* taker = transfer->take(context, std::move(stay));
  judge(transfer);
  return taker;
}

std::optional<std::string> FileRelay::open(const FileTransferPtr& transfer, const Asker& asker,
                                           const NodeName& source, const InstanceId& instance) {
  return transfer->open(asker, source, instance);
}

void FileRelay::refuse(const FileTransferPtr& transfer, const grpc::Status& why) {
  transfer->end(why);
}

FileRelay::Giver* FileRelay::send(rpc::Caller caller, std::function<void(const Error&)> on_refused,
                                  Revocations::Stay stay) {
  auto* giver =
      new FileTransfer::Giver(book_, std::move(caller), std::move(on_refused), std::move(stay));
  giver->StartRead(&giver->incoming);
  return giver;
}

std::vector<FileTransferPtr> FileRelay::all() const {
  std::vector<FileTransferPtr> transfers;
  const MutexLock lock(book_->mutex);
  for (const auto& [ticket, entry] : book_->open)
    if (FileTransferPtr one = entry.lock()) transfers.push_back(std::move(one));
  return transfers;
}

void FileRelay::drop(const core::AttemptKey& attempt) {
  for (const FileTransferPtr& one : all()) one->end_if_of(attempt);
}

void FileRelay::node_gone(const NodeName& node) {
  for (const FileTransferPtr& one : all()) one->end_if_waiting_for(node);
}

}  // namespace muster::controller
