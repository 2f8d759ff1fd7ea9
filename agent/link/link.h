// Link keeps the agent connected to its controller, with one control stream at a time. The Agent
// creates and destroys it. Everything but wait() runs on the loop that it is constructed with.
//
// - After a lost connection Link tries again without end, after a random delay of 50 to 500 ms
//   (common/rpc/backoff.h). After a refusal it tries slowly (`slow_retry`).
// - It keeps the message order of agent_service.proto: Hello first, then nothing until Welcome,
//   then facts and heartbeats.
// - It logs one line per cause: unreachable, refused, connected again. Once a day it says that the
//   agent's certificate ends soon.
// - It does not interpret the messages (agent/loop does) and sends no log bytes (log_push does).
// - To stop: call stop() on the loop, then wait() on another thread; then the loop may stop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/link/control_stream.h"
#include "common/async/gate.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/rpc/backoff.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct LinkOptions {
  // called at each try, because a controller may come back at another address
  std::function<Result<rpc::Endpoint>()> endpoint;
  Duration slow_retry = std::chrono::seconds(5);      // after a refusal
  Duration hello_timeout = std::chrono::seconds(10);  // from the try to Welcome
  std::uint64_t seed = 0;
  const Clock* clock = &system_clock();
};

struct LinkHandlers {
  std::function<v1::Hello()> hello;
  // An error means that this agent refuses the controller (NotAllowed: the controller belongs to
  // another cluster). Link logs the error once and closes the stream. `hello_sent` is a time before
  // the Hello was sent.
  std::function<Result<void>(const v1::Welcome&, BootTime hello_sent)> on_welcome;
  std::function<void(v1::Orders)> on_orders;
  std::function<void(v1::FilesWanted)> on_files_wanted;
  std::function<void(v1::StoreCheck)> on_store_check;   // may be empty
  std::function<void(v1::Authorities)> on_authorities;  // may be empty
  std::function<void()> on_unreached;  // a try brought no Welcome and no refusal; may be empty
  std::function<void(const v1::FactAck&)> on_fact_ack;
  std::function<void(const v1::HeartbeatAck&)> on_heartbeat_ack;
  std::function<void()> on_down;  // after a Welcome only
  // Either side refused; `other_cluster`: because they belong to two clusters. If the handler
  // returns true, Link does not try again, and the handler ends the agent.
  std::function<bool(const Error&, bool other_cluster)> on_refused;
};

class Link {
 public:
  Link(async::Loop& loop, LinkOptions options, LinkHandlers handlers);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void start();
  void stop();
  // Blocks until gRPC has released the last stream. Do not call it on the loop.
  void wait();

  // Ends the stream and opens another at once, to send what only a Hello carries. Does nothing if
  // there is no stream, because the next one sends a Hello anyway.
  void say_hello_again();

  [[nodiscard]] bool up() const;
  // The messages are dropped when the link is not up. The caller sends them again after the next
  // Welcome.
  void send_facts(v1::Facts facts);
  void send_heartbeat(v1::Heartbeat heartbeat);
  void send_unsupported(v1::Unsupported unsupported);

 private:
  enum class Phase : std::uint8_t {
    Waiting,     // no stream
    Greeting,    // Hello is sent
    Up,          // Welcome has come
    Renewing,    // up, and the stream ends for a new Hello
    Restarting,  // the stream ends for a new Hello before a Welcome
    Late,        // the stream ends because no Welcome came in time
    Refusing,    // the stream ends because this agent refuses the controller
    Stopped,
  };
  void open();
  void check_end();
  void try_again(Duration after);
  void on_message(v1::ConnectResponse message);
  void on_welcome(const v1::Welcome& welcome);
  void on_done(const grpc::Status& status);
  void refused(const Error& error, bool other_cluster);

  async::Loop& loop_;
  LinkOptions options_;
  LinkHandlers handlers_;
  rpc::Backoff backoff_ MUSTER_GUARDED_BY(loop_);
  async::Timer retry_;
  async::Timer hello_timer_;
  async::Timer end_timer_;
  async::Gate gate_;
  Phase phase_ MUSTER_GUARDED_BY(loop_) = Phase::Waiting;
  std::shared_ptr<ControlStream> stream_ MUSTER_GUARDED_BY(loop_);
  // of stream_; posts from an older stream are dropped
  std::uint64_t generation_ MUSTER_GUARDED_BY(loop_) = 0;
  BootTime hello_sent_ MUSTER_GUARDED_BY(loop_){};
  std::string address_ MUSTER_GUARDED_BY(loop_);
  // Until the next Welcome. An untrusted end is reported even where another trouble was before.
  OncePerCause trouble_ MUSTER_GUARDED_BY(loop_);
  OncePerCause untrusted_ MUSTER_GUARDED_BY(loop_);
};

}  // namespace muster::agent
