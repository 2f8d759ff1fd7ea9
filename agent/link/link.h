// The agent's line to its controller: one control stream at a time, opened again for ever (50 ..
// 500 ms, drawn: common/rpc/backoff.h; a refusal: slowly). Keeps the order of agent_service.proto:
// Hello first, then nothing until Welcome, then facts and heartbeats.
//
// Strand: everything on the loop it is made with. Says one line a cause: unreachable, refused, back
// again.
// Leaves to others: what the messages mean (agent/loop), log bytes (log_push).
// Stop: stop() on the loop, then wait() from another thread, then the loop may stop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/link/control_stream.h"
#include "common/async/gate.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rpc/backoff.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 1;

// Welcome.features that this agent goes by.
// takes the logs of processes beside the ranks
inline constexpr std::string_view kAuxiliaryLogs = "auxiliary-logs";
[[nodiscard]] bool has_feature(const v1::Welcome& welcome, std::string_view feature);

struct LinkOptions {
  // asked at each try: a controller may come back elsewhere
  std::function<Result<rpc::Endpoint>()> endpoint;
  Duration slow_retry = std::chrono::seconds(5);      // after a refusal
  Duration hello_timeout = std::chrono::seconds(10);  // from the try to Welcome
  std::uint64_t seed = 0;
  const Clock* clock = &system_clock();
};

struct LinkHandlers {
  std::function<v1::Hello()> hello;
  // An error is this agent's refusal of the controller (NotAllowed: it is another cluster's): said
  // once, the stream is closed. `hello_sent` is from before the Hello went out.
  std::function<Result<void>(const v1::Welcome&, BootTime hello_sent)> on_welcome;
  std::function<void(v1::Orders)> on_orders;
  std::function<void(v1::FilesWanted)> on_files_wanted;
  std::function<void(const v1::FactAck&)> on_fact_ack;
  std::function<void(const v1::HeartbeatAck&)> on_heartbeat_ack;
  std::function<void()> on_down;  // after a Welcome only
  // Either side refused, because they are of two clusters or for another reason; true: do not try
  // again (the handler ends the agent).
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
  // Not on the loop: until gRPC has let go of the last stream.
  void wait();

  // For what only a Hello can say: ends the stream and opens another at once. Nothing where there
  // is none: the next one says it anyway.
  void say_hello_again();

  [[nodiscard]] bool up() const { return welcomed_; }
  // Dropped when not up: what is to be said is said again after the next Welcome.
  void send_facts(v1::Facts facts);
  void send_heartbeat(v1::Heartbeat heartbeat);
  void send_unsupported(v1::Unsupported unsupported);

 private:
  void open();
  void try_again(Duration after);
  void on_message(v1::ConnectResponse message);
  void on_done(const grpc::Status& status);
  void refused(const Error& error, bool other_cluster);

  async::Loop& loop_;
  LinkOptions options_;
  LinkHandlers handlers_;
  rpc::Backoff backoff_;
  async::Timer retry_;
  async::Timer hello_timer_;
  async::Gate gate_;
  std::shared_ptr<ControlStream> stream_;
  std::uint64_t generation_ = 0;  // of stream_: what an older one still posts is dropped
  BootTime hello_sent_{};
  bool welcomed_ = false;
  bool stopped_ = false;
  bool refused_by_us_ = false;
  bool hello_timed_out_ = false;
  bool hello_again_ = false;  // it was ended for that
  std::string address_;
  std::string logged_;  // the last complaint, until the next Welcome
};

}  // namespace muster::agent
