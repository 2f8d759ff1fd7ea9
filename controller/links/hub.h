// All agents: who is connected under which node name, what each was last told. The AgentService of
// the controller's server.
//
//   gRPC's threads   convert, stamp, hand to the shell
//   shell's strand   peers_, book_: Hello is judged, orders are computed and compared,
//                    acknowledgements leave, all from durable state
//   work loop        series points go to the log store
//
// Rules: one instance a node name (ABORTED names the holder; the same instance replaces its old
// stream). A Hello that tells of more than this journal can have told (core::reaches_beyond) means
// that the journal is older than it must be: it is refused, the shell is paused and the daemon told
// (on_behind). From then on nobody is welcomed or given orders, and no fact is acknowledged: its
// agent says it again to the next controller. Who is connected stays, and its leases are renewed.
// Heartbeats are answered at once, without any sync: presence is not durable. Losing a connection
// is
// observed at once. The stream of a node that is declared dead is ended: a new Hello alone takes
// the node back. A part that was started is never ordered to run again, but stopped where its agent
// does not hold it. What an agent sends of fields unknown here goes no further. A part that cannot
// be ordered is a start failure of its node.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/async/loop.h"
#include "controller/links/file_relay.h"
#include "controller/links/hello.h"
#include "controller/links/logs_collected.h"
#include "controller/links/order_book.h"
#include "controller/links/session.h"
#include "controller/logs/log_store.h"
#include "controller/shell/shell.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::controller {

class Hub final : public v1::AgentService::CallbackService, public Listener, public SessionOwner {
 public:
  struct Options {
    std::string version;
    Duration heartbeat_interval = std::chrono::seconds(1);
    std::string cluster_out;
    // Once, on the strand: the journal is older than it must be, and how that is known. The daemon
    // makes it durable.
    std::function<void(const Error&)> on_behind;
  };
  using PushLogsReactor = grpc::ServerBidiReactor<v1::PushLogsRequest, v1::PushLogsResponse>;
  // Makes the receiver of one log stream; never null.
  using PushLogsMaker = std::function<PushLogsReactor*(grpc::CallbackServerContext*)>;

  Hub(Shell& shell, logs::LogStore& store, async::Loop& work, LogsCollected& collected,
      const Clock& clock, Options options, PushLogsMaker push_logs);

  void set_start(const Shell::Started& started);  // before listening

  // AgentService
  grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext* context) override;
  PushLogsReactor* PushLogs(grpc::CallbackServerContext* context) override;
  FileRelay::Taker* FetchFiles(grpc::CallbackServerContext* context,
                               const v1::FetchFilesRequest* request) override;
  FileRelay::Giver* SendFiles(grpc::CallbackServerContext* context,
                              v1::SendFilesResponse* response) override;

  // Listener, on the strand
  void on_release(std::span<const journal::Row> rows, const View& view) override;
  void on_heartbeat(const core::HeartbeatHeard& heartbeat, const core::Presence& presence) override;

  // SessionOwner, on gRPC's threads
  void on_hello(const SessionPtr& session, v1::Hello hello, Now arrived) override;
  void on_facts(const SessionPtr& session, v1::Facts facts, Now arrived) override;
  void on_heartbeat(const SessionPtr& session, v1::Heartbeat heartbeat, Now arrived) override;
  void on_unsupported(const SessionPtr& session, v1::Unsupported unsupported) override;
  void on_gone(const SessionPtr& session, Now at) override;

 private:
  struct Peer {
    SessionPtr session;
    ConnectionId connection;
    std::set<core::AttemptKey> present;  // run directories its Hello named
    std::set<core::AttemptKey> seen;     // run directories its latest heartbeat named
    std::vector<core::Assignment> sent;
    bool welcomed = false;
    std::string incarnation;
    std::string contender;  // the latest other life that asked for the name
    BootTime contended_since{};
  };
  // What an agent asks of the strand. It does not stand in the clients' inbox, which they may have
  // filled; what waits of agents has bounds of its own.
  [[nodiscard]] bool ask(std::size_t bytes, ReadFn read);
  void judge(const SessionPtr& session, const v1::Hello& hello, Now arrived, const View& view);
  void welcome(const SessionPtr& session, ConnectionId connection, const View& view);
  grpc::Status other_incarnation(Peer& holder, const v1::Hello& hello, Now arrived,
                                 const View& view) const;
  void end_stream(std::map<NodeName, Peer>::iterator peer, Now at, std::string_view why);
  void tell(const NodeName& node, const View& view, bool always);
  void find_files(const FileTransferPtr& transfer, const v1::FetchFilesRequest& request,
                  const View& view);
  void find_leftovers(const core::HeartbeatHeard& heartbeat);
  void cannot_launch(const NodeName& node, const core::Assignment& wanted, const Error& why,
                     const View& view);

  Shell& shell_;
  logs::LogStore& store_;
  async::Loop& work_;
  LogsCollected& collected_;
  const Clock& clock_;
  Options options_;
  PushLogsMaker push_logs_;
  FileRelay files_;

  // Strand only.
  std::map<NodeName, Peer> peers_;
  OrderBook book_;
  std::set<core::AttemptKey> unlaunchable_;  // of live attempts; said once
  std::uint64_t connections_ = 0;
  std::set<InstanceId> welcomed_;  // since this start

  struct Asking {
    std::atomic<std::size_t> questions = 0, bytes = 0;
  };
  const std::shared_ptr<Asking> asking_ = std::make_shared<Asking>();

  JournalIndex loaded_;                   // as epoch_
  std::atomic<std::uint64_t> epoch_ = 0;  // set once, before the first call is served
};

}  // namespace muster::controller
