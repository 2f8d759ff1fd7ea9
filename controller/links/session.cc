#include "controller/links/session.h"

#include <utility>

namespace muster::controller {

std::size_t waiting_cost(const v1::Facts& facts) {
  constexpr std::size_t kEach = 512;  // each fact is an input of its own, with its answer
  return facts.ByteSizeLong() + kEach * static_cast<std::size_t>(facts.facts_size());
}

grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Session::begin(
    SessionOwner& owner, const Clock& clock, const grpc::CallbackServerContext& context,
    Revocations::Stay stay) {
  auto session = std::make_shared<Session>(owner, clock, context, std::move(stay));
  session->self_ = session;
  session->StartRead(&session->incoming_);
  return session.get();
}

ConnectionId Session::connection() const {
  const MutexLock lock(mutex_);
  return connection_;
}

bool Session::is_gone() const {
  const MutexLock lock(mutex_);
  return gone_notified_;
}

bool Session::half_closed() const {
  const MutexLock lock(mutex_);
  return half_closed_;
}

// --- reading -------------------------------------------------------------------------------------

void Session::OnReadDone(bool ok) {
  const Now arrived = clock_.now();
  if (!ok) {
    {
      // The Hello is not answered yet; the answer ends the stream. (A broken connection is reported
      // as OnCancel, whatever is open.)
      const MutexLock lock(mutex_);
      half_closed_ = true;
      if (asked_ && !decided_ && !gone_notified_) return;
    }
    gone();
    refuse(grpc::Status::OK);
    return;
  }
  if (!hand_over(arrived)) return;
  incoming_.Clear();
  {
    const MutexLock lock(mutex_);
    reading_paused_ = facts_waiting_ > kFactsWaitingMost;
    if (reading_paused_) return;
  }
  StartRead(&incoming_);
}

void Session::facts_taken(std::size_t cost) {
  const MutexLock lock(mutex_);
  facts_waiting_ -= cost;
  if (!reading_paused_ || facts_waiting_ > kFactsWaitingMost || finished_) return;
  reading_paused_ = false;
  StartRead(&incoming_);
}

bool Session::hand_over(Now arrived) {
  const SessionPtr self = shared_from_this();
  if (incoming_.has_hello()) {
    if (hello_received_) {
      refuse({grpc::StatusCode::FAILED_PRECONDITION,
              "agent stream of node '" + node_.str() +
                  "': a second Hello; open a new stream instead"});
      return false;
    }
    hello_received_ = true;
    node_ = NodeName(incoming_.hello().node());
    instance_ = InstanceId(incoming_.hello().instance());
    {
      const MutexLock lock(mutex_);
      asked_ = true;
    }
    owner_.on_hello(self, std::move(*incoming_.mutable_hello()), arrived);
    return true;
  }
  if (connection().value == 0) {
    refuse({grpc::StatusCode::FAILED_PRECONDITION,
            "agent stream from '" + peer_ +
                "': a message before the Welcome; Hello is first, and then it waits"});
    return false;
  }
  if (incoming_.has_facts()) {
    {
      const MutexLock lock(mutex_);
      facts_waiting_ += waiting_cost(incoming_.facts());
    }
    owner_.on_facts(self, std::move(*incoming_.mutable_facts()), arrived);
  }
  if (incoming_.has_heartbeat())
    owner_.on_heartbeat(self, std::move(*incoming_.mutable_heartbeat()), arrived);
  if (incoming_.has_unsupported() && ++unsupported_ <= kUnsupportedMost)
    owner_.on_unsupported(self, std::move(*incoming_.mutable_unsupported()));
  return true;  // other messages of a newer agent are not for this version
}

// --- writing -------------------------------------------------------------------------------------

void Session::accept(ConnectionId connection, v1::Welcome welcome) {
  bool over = false;
  {
    const MutexLock lock(mutex_);
    connection_ = connection;
    queue_.put(std::move(welcome));
    decided_ = true;
    over = half_closed_;
    write_next();
  }
  // The Welcome is being written, and nothing can follow it.
  if (!over) return;
  gone();
  refuse(grpc::Status::OK);
}

void Session::refuse(grpc::Status status) {
  const MutexLock lock(mutex_);
  decided_ = true;
  if (!ending_) ending_ = std::move(status);
  write_next();
}

void Session::send(core::NodeOrders orders) { put(std::move(orders)); }

template <class Message>
bool Session::put_bounded(Message message) {
  const MutexLock lock(mutex_);
  if (!queue_.put(std::move(message))) return false;
  write_next();
  return true;
}
bool Session::want(v1::FilesWanted files) { return put_bounded(std::move(files)); }
bool Session::want(v1::StoreCheck check) { return put_bounded(std::move(check)); }
void Session::trust(v1::Authorities authorities) { put(std::move(authorities)); }
void Session::ack(v1::FactAck ack) { put(std::move(ack)); }
void Session::ack(v1::HeartbeatAck ack) { put(std::move(ack)); }

template <class Message>
void Session::put(Message message) {
  const MutexLock lock(mutex_);
  queue_.put(std::move(message));
  write_next();
}

void Session::write_next() {
  if (writing_ || finished_) return;
  if (ending_) {
    finished_ = true;
    Finish(*ending_);
    return;
  }
  auto next = queue_.next();
  if (!next) return;
  outgoing_ = std::move(*next);
  writing_ = true;
  StartWrite(&outgoing_);
}

void Session::OnWriteDone(bool ok) {
  if (!ok) gone();
  const MutexLock lock(mutex_);
  writing_ = false;
  if (!ok && !ending_) ending_ = grpc::Status::OK;
  write_next();
}

// --- the end -------------------------------------------------------------------------------------

void Session::gone() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(gone_notified_, true)) return;
  }
  owner_.on_gone(shared_from_this(), clock_.now());
}

void Session::OnCancel() {
  gone();
  refuse(grpc::Status::OK);
}

void Session::OnDone() {
  stay_.leave();
  gone();
  const SessionPtr last = std::move(self_);  // the hub may keep it a little longer
}

}  // namespace muster::controller
