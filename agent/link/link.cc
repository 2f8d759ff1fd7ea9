#include "agent/link/link.h"

#include <algorithm>

#include "common/base/version.h"
#include "common/log/log.h"
#include "common/rpc/status.h"

namespace muster::agent {
namespace {

// The controller has answered and does not accept this agent as it is. Only a person can change
// that.
bool is_refusal(grpc::StatusCode code) {
  return code == grpc::StatusCode::ABORTED || code == grpc::StatusCode::FAILED_PRECONDITION ||
         code == grpc::StatusCode::UNAUTHENTICATED || code == grpc::StatusCode::PERMISSION_DENIED ||
         code == grpc::StatusCode::INVALID_ARGUMENT || code == grpc::StatusCode::UNIMPLEMENTED;
}

}  // namespace

Link::Link(async::Loop& loop, LinkOptions options, LinkHandlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      backoff_(options_.seed),
      retry_(loop, "connect again"),
      hello_timer_(loop, "hello timeout") {}

Link::~Link() = default;

void Link::start() { open(); }

void Link::stop() {
  stopped_ = true;
  welcomed_ = false;
  retry_.cancel();
  hello_timer_.cancel();
  gate_.close();
  if (stream_) stream_->close();
}

void Link::say_hello_again() {
  if (stopped_ || !stream_) return;
  hello_again_ = true;
  stream_->close();
}

void Link::wait() { gate_.wait(); }

void Link::open() {
  if (stopped_) return;
  auto endpoint = options_.endpoint();
  if (!endpoint) {
    const std::string text = endpoint.error().message;
    if (logged_ != text)
      log::warn("finding the controller: " + text + "; looking again until it is there");
    logged_ = text;
    try_again(backoff_.next());
    return;
  }
  address_ = endpoint->address;
  refused_by_us_ = false;
  hello_timed_out_ = false;
  const std::uint64_t generation = ++generation_;
  stream_ = ControlStream::open(loop_, gate_, *endpoint,
                                {.on_message =
                                     [this, generation](v1::ConnectResponse message) {
                                       if (generation == generation_ && !stopped_)
                                         on_message(std::move(message));
                                     },
                                 .on_done =
                                     [this, generation](const grpc::Status& status) {
                                       if (generation == generation_) on_done(status);
                                     }});
  if (!stream_) return;
  hello_sent_ = options_.clock->now().boot;
  v1::ConnectRequest request;
  *request.mutable_hello() = handlers_.hello();
  stream_->send(std::move(request));
  hello_timer_.arm(options_.hello_timeout, [this] {
    if (welcomed_ || !stream_) return;
    hello_timed_out_ = true;
    stream_->close();
  });
}

void Link::try_again(Duration after) {
  if (!stopped_) retry_.arm(after, [this] { open(); });
}

void Link::on_message(v1::ConnectResponse message) {
  switch (message.what_case()) {
    case v1::ConnectResponse::kWelcome: {
      if (welcomed_) return;
      const v1::Welcome& welcome = message.welcome();
      Result<void> taken;
      if (welcome.protocol() < kProtocolMin || welcome.protocol() > kProtocolMax) {
        taken = fail(ErrorCode::Unsupported,
                     "connecting to the controller at '" + address_ + "': it chose protocol " +
                         std::to_string(welcome.protocol()) + ", this agent speaks " +
                         std::to_string(kProtocolMin) + ".." + std::to_string(kProtocolMax) +
                         "; upgrade the older one");
      } else {
        welcomed_ = true;  // the handler may send at once
        taken = handlers_.on_welcome(welcome, hello_sent_);
      }
      if (!taken) {
        welcomed_ = false;
        refused_by_us_ = true;
        stream_->close();
        refused(taken.error(), taken.error().code == ErrorCode::NotAllowed);
        return;
      }
      hello_timer_.cancel();
      backoff_.reset();
      logged_.clear();
      log::info("attached to the controller", {{"address", address_},
                                               {"cluster", welcome.cluster_id()},
                                               {"generation", welcome.lineage().generation()},
                                               {"epoch", welcome.epoch()}});
      return;
    }
    case v1::ConnectResponse::kOrders:
      if (welcomed_) handlers_.on_orders(std::move(*message.mutable_orders()));
      return;
    case v1::ConnectResponse::kFactAck:
      if (welcomed_) handlers_.on_fact_ack(message.fact_ack());
      return;
    case v1::ConnectResponse::kHeartbeatAck:
      if (welcomed_) handlers_.on_heartbeat_ack(message.heartbeat_ack());
      return;
    case v1::ConnectResponse::kFilesWanted:
      if (welcomed_ && handlers_.on_files_wanted)
        handlers_.on_files_wanted(std::move(*message.mutable_files_wanted()));
      return;
    // a message of a newer controller; the protocol number protects against incompatible ones
    case v1::ConnectResponse::WHAT_NOT_SET: return;
  }
}

void Link::on_done(const grpc::Status& status) {
  const bool was_up = std::exchange(welcomed_, false), again = std::exchange(hello_again_, false);
  stream_.reset();
  hello_timer_.cancel();
  if (stopped_) return;
  if (was_up && handlers_.on_down) handlers_.on_down();
  if (refused_by_us_) return;  // refused() has logged it and armed the timer
  if (again) return open();
  if (!was_up && is_refusal(status.error_code())) {
    refused(rpc::to_error(status), status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    return;
  }
  std::string why = hello_timed_out_ ? "no answer to Hello"
                    : status.ok()    ? "the controller ended the stream"
                                     : status.error_message();
  if (was_up) {
    log::warn("lost the controller at '" + address_ + "': " + why +
              "; runs go on, connecting again");
    logged_ = why;
  } else if (logged_.empty()) {
    log::warn("cannot reach the controller at '" + address_ + "': " + why +
              "; trying again until it is there");
    logged_ = why;
  }
  try_again(backoff_.next());
}

void Link::refused(const Error& error, bool other_cluster) {
  const bool for_good = handlers_.on_refused && handlers_.on_refused(error, other_cluster);
  const std::string next =
      for_good
          ? ""
          : "; trying again every " +
                std::to_string(
                    std::chrono::duration_cast<std::chrono::seconds>(options_.slow_retry).count()) +
                " s";
  if (logged_ != error.message) log::error("refused: " + error.message + next);
  logged_ = error.message;
  if (for_good) return;
  try_again(options_.slow_retry);
}

void Link::send_facts(v1::Facts facts) {
  if (!welcomed_ || !stream_) return;
  v1::ConnectRequest request;
  // After a sweep the next attempt may be placed, from the newest checkpoint that the controller
  // knows. So the heartbeat that reports this checkpoint must not arrive after the sweep.
  const bool swept =
      std::ranges::any_of(facts.facts(), [](const v1::Fact& fact) { return fact.has_swept(); });
  *request.mutable_facts() = std::move(facts);
  stream_->send(std::move(request), swept);
}

void Link::send_unsupported(v1::Unsupported unsupported) {
  if (!welcomed_ || !stream_) return;
  v1::ConnectRequest request;
  *request.mutable_unsupported() = std::move(unsupported);
  stream_->send(std::move(request));
}

void Link::send_heartbeat(v1::Heartbeat heartbeat) {
  if (!welcomed_ || !stream_) return;
  v1::ConnectRequest request;
  *request.mutable_heartbeat() = std::move(heartbeat);
  stream_->send_heartbeat(std::move(request));
}

}  // namespace muster::agent
