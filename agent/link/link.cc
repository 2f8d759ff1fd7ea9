#include "agent/link/link.h"

#include <algorithm>

#include "agent/link/ends_soon.h"
#include "common/base/version.h"
#include "common/log/log.h"
#include "common/pki/certificate.h"
#include "common/rpc/status.h"

namespace muster::agent {
namespace {

constexpr const char* kNoGrpc =
    "it has TLS, but not gRPC: is this the controller's enrolment port? Give the port of its "
    "--listen, and the other one with --enrol";

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
      hello_timer_(loop, "hello timeout"),
      end_timer_(loop, "certificate's end") {}

Link::~Link() = default;

void Link::start() {
  open();
  check_end();
}

// The file may be another one by now, and the next connection reads it again.
void Link::check_end() {
  loop_.assert_on();
  if (phase_ == Phase::Stopped) return;
  if (const auto endpoint = options_.endpoint(); endpoint && endpoint->credentials) {
    const std::string text = ends_soon(*endpoint->credentials, options_.clock->now().wall);
    if (!text.empty()) log::warn(text);
  }
  end_timer_.arm(std::chrono::hours(24), [this] { check_end(); });
}

void Link::stop() {
  loop_.assert_on();
  phase_ = Phase::Stopped;
  retry_.cancel();
  hello_timer_.cancel();
  end_timer_.cancel();
  gate_.close();
  if (stream_) stream_->close();
}

void Link::say_hello_again() {
  loop_.assert_on();
  switch (phase_) {
    case Phase::Waiting:
    case Phase::Refusing:
    case Phase::Stopped: return;
    case Phase::Up:
    case Phase::Renewing: phase_ = Phase::Renewing; break;
    case Phase::Greeting:
    case Phase::Restarting:
    case Phase::Late: phase_ = Phase::Restarting; break;
  }
  stream_->close();
}

void Link::wait() { gate_.wait(); }

bool Link::up() const {
  loop_.assert_on();
  return phase_ == Phase::Up || phase_ == Phase::Renewing;
}

void Link::open() {
  loop_.assert_on();
  if (phase_ == Phase::Stopped) return;
  auto endpoint = options_.endpoint();
  if (!endpoint) {
    const std::string text = endpoint.error().message;
    if (trouble_.first(pki::without_clock(text)))
      log::warn("finding the controller: " + text + "; looking again until it is there");
    try_again(backoff_.next());
    return;
  }
  address_ = endpoint->address;
  phase_ = Phase::Greeting;
  const std::uint64_t generation = ++generation_;
  stream_ = ControlStream::open(loop_, gate_, *endpoint,
                                {.on_message =
                                     [this, generation](v1::ConnectResponse message) {
                                       loop_.assert_on();
                                       if (generation == generation_)
                                         on_message(std::move(message));
                                     },
                                 .on_done =
                                     [this, generation](const grpc::Status& status) {
                                       loop_.assert_on();
                                       if (generation == generation_) on_done(status);
                                     }});
  hello_sent_ = options_.clock->now().boot;
  v1::ConnectRequest request;
  *request.mutable_hello() = handlers_.hello();
  stream_->send(std::move(request));
  hello_timer_.arm(options_.hello_timeout, [this] {
    loop_.assert_on();
    if (phase_ != Phase::Greeting) return;
    phase_ = Phase::Late;
    stream_->close();
  });
}

void Link::try_again(Duration after) {
  loop_.assert_on();
  if (phase_ != Phase::Stopped) retry_.arm(after, [this] { open(); });
}

void Link::on_message(v1::ConnectResponse message) {
  loop_.assert_on();
  if (phase_ == Phase::Greeting && message.has_welcome()) return on_welcome(message.welcome());
  if (!up()) return;
  switch (message.what_case()) {
    case v1::ConnectResponse::kOrders:
      handlers_.on_orders(std::move(*message.mutable_orders()));
      return;
    case v1::ConnectResponse::kFactAck: handlers_.on_fact_ack(message.fact_ack()); return;
    case v1::ConnectResponse::kHeartbeatAck:
      handlers_.on_heartbeat_ack(message.heartbeat_ack());
      return;
    case v1::ConnectResponse::kFilesWanted:
      if (handlers_.on_files_wanted)
        handlers_.on_files_wanted(std::move(*message.mutable_files_wanted()));
      return;
    case v1::ConnectResponse::kStoreCheck:
      if (handlers_.on_store_check)
        handlers_.on_store_check(std::move(*message.mutable_store_check()));
      return;
    case v1::ConnectResponse::kAuthorities:
      if (handlers_.on_authorities)
        handlers_.on_authorities(std::move(*message.mutable_authorities()));
      return;
    case v1::ConnectResponse::kWelcome:  // a second one
    // a message of a newer controller; the protocol number protects against incompatible ones
    case v1::ConnectResponse::WHAT_NOT_SET: return;
  }
}

void Link::on_welcome(const v1::Welcome& welcome) {
  loop_.assert_on();
  Result<void> taken;
  if (welcome.protocol() < kProtocolMin || welcome.protocol() > kProtocolMax) {
    taken = fail(ErrorCode::Unsupported,
                 "connecting to the controller at '" + address_ + "': it chose protocol " +
                     std::to_string(welcome.protocol()) + ", this agent speaks " +
                     std::to_string(kProtocolMin) + ".." + std::to_string(kProtocolMax) +
                     "; upgrade the older one");
  } else {
    phase_ = Phase::Up;  // the handler may send at once
    taken = handlers_.on_welcome(welcome, hello_sent_);
  }
  if (!taken) {
    phase_ = Phase::Refusing;
    stream_->close();
    refused(taken.error(), taken.error().code == ErrorCode::NotAllowed);
    return;
  }
  hello_timer_.cancel();
  backoff_.reset();
  trouble_.over();
  untrusted_.over();
  log::info("attached to the controller", {{"address", address_},
                                           {"cluster", welcome.cluster_id()},
                                           {"generation", welcome.lineage().generation()},
                                           {"epoch", welcome.epoch()}});
}

void Link::on_done(const grpc::Status& status) {
  loop_.assert_on();
  const Phase ended = phase_;
  const bool was_up = up();
  stream_.reset();
  hello_timer_.cancel();
  if (ended == Phase::Stopped) return;
  phase_ = Phase::Waiting;
  if (was_up && handlers_.on_down) handlers_.on_down();
  if (ended == Phase::Refusing) return;  // refused() has logged it and armed the timer
  if (ended == Phase::Renewing || ended == Phase::Restarting) return open();
  if (!was_up && is_refusal(status.error_code())) {
    refused(rpc::to_error(status), status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    return;
  }
  std::string why = ended == Phase::Late      ? "no answer to Hello"
                    : status.ok()             ? "the controller ended the stream"
                    : rpc::is_no_grpc(status) ? kNoGrpc
                                              : status.error_message();
  if (!was_up && handlers_.on_unreached) handlers_.on_unreached();
  const bool untrusted = !rpc::is_unix(address_) && rpc::ended_in_handshake(status);
  if (untrusted) {
    why +=
        ", in the TLS handshake; the certificate may have ended, or be of another CA than the "
        "controller's; is this machine's clock right ('date -u')? If the CA was changed while this "
        "node was away, the node joins again: `muster node replace NAME` on the controller's "
        "machine makes a token, and here the credentials file makes room for new ones";
  }
  // Nothing has been reported since a Welcome, so the loss of a link that was up always is.
  const bool is_new = untrusted ? untrusted_.first() : !trouble_.reported();
  if (is_new) {
    trouble_.first(why);
    log::warn(was_up ? "lost the controller at '" + address_ + "': " + why +
                           "; runs go on, connecting again"
                     : "cannot reach the controller at '" + address_ + "': " + why +
                           "; trying again until it is there");
  }
  try_again(backoff_.next());
}

void Link::refused(const Error& error, bool other_cluster) {
  loop_.assert_on();
  const bool for_good = handlers_.on_refused && handlers_.on_refused(error, other_cluster);
  const std::string next =
      for_good
          ? ""
          : "; trying again every " +
                std::to_string(
                    std::chrono::duration_cast<std::chrono::seconds>(options_.slow_retry).count()) +
                " s";
  if (trouble_.first(error.message)) log::error("refused: " + error.message + next);
  if (for_good) return;
  try_again(options_.slow_retry);
}

void Link::send_facts(v1::Facts facts) {
  loop_.assert_on();
  if (!up()) return;
  v1::ConnectRequest request;
  // After a sweep the next attempt may be placed, from the newest checkpoint that the controller
  // knows. So the heartbeat that reports this checkpoint must not arrive after the sweep.
  const bool swept =
      std::ranges::any_of(facts.facts(), [](const v1::Fact& fact) { return fact.has_swept(); });
  *request.mutable_facts() = std::move(facts);
  stream_->send(std::move(request), swept);
}

void Link::send_unsupported(v1::Unsupported unsupported) {
  loop_.assert_on();
  if (!up()) return;
  v1::ConnectRequest request;
  *request.mutable_unsupported() = std::move(unsupported);
  stream_->send(std::move(request));
}

void Link::send_heartbeat(v1::Heartbeat heartbeat) {
  loop_.assert_on();
  if (!up()) return;
  v1::ConnectRequest request;
  *request.mutable_heartbeat() = std::move(heartbeat);
  stream_->send_heartbeat(std::move(request));
}

}  // namespace muster::agent
