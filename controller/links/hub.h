// All connected agents: which session has which node name, and which orders each agent was last
// sent. It is the AgentService of the controller's server; main() of the controller owns it. It
// runs on gRPC's threads and on the shell's strand:
//
//   gRPC's threads   convert, stamp, pass to the shell
//   shell's strand   peers_, book_: judges Hellos, computes and compares orders, sends
//                    acknowledgements, all from durable state
//   work loop        writes series points to the log store
//
// Rules:
// - One instance for each node name. Another instance gets ABORTED, which names the owner of the
//   name; the same instance replaces its old stream.
// - A Hello may name more than this journal can have reported (core::reaches_beyond). Then the
//   journal is older than it must be: the Hello is refused, the shell is paused, and the daemon is
//   notified (on_behind). From then on nobody is welcomed or given orders, and no fact is
//   acknowledged, so that its agent sends it again to the next controller. Connected agents stay
//   connected, and their leases are renewed.
// - Heartbeats are answered at once, without a sync, because presence is not durable.
// - A lost connection is observed at once.
// - The stream of a node that is declared dead is ended; only a new Hello takes the node back.
// - A part that was started is never ordered to run again. If its agent does not have it, it is
//   stopped.
// - Unknown fields in an agent's messages are discarded.
// - A part whose order cannot be made is a start failure of its node.
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
    // Called once, on the strand: the journal is older than it must be, and the Error explains how
    // that is known. The daemon makes this durable.
    std::function<void(const Error&)> on_behind;
  };
  using PushLogsReactor = grpc::ServerBidiReactor<v1::PushLogsRequest, v1::PushLogsResponse>;
  // Makes the receiver of one log stream; never null.
  using PushLogsMaker = std::function<PushLogsReactor*(grpc::CallbackServerContext*)>;

  Hub(Shell& shell, logs::LogStore& store, async::Loop& work, LogsCollected& collected,
      const Clock& clock, Options options, PushLogsMaker push_logs);

  void set_start(const Shell::Started& started);  // call this before listening

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
    std::set<core::AttemptKey> present;  // run directories that its Hello named
    std::set<core::AttemptKey> seen;     // run directories that its latest heartbeat named
    std::vector<core::Assignment> sent;
    bool welcomed = false;
    std::string incarnation;
    std::string contender;  // the latest other incarnation that asked for the name
    BootTime contended_since{};
  };
  // Passes an agent's question to the strand. It does not use the clients' inbox, which clients may
  // have filled; what waits for agents has bounds of its own.
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
  std::set<core::AttemptKey> unlaunchable_;  // of live attempts; each is logged once
  std::uint64_t connections_ = 0;
  std::set<InstanceId> welcomed_;  // since this start

  struct Asking {
    std::atomic<std::size_t> questions = 0, bytes = 0;
  };
  const std::shared_ptr<Asking> asking_ = std::make_shared<Asking>();

  JournalIndex loaded_;                   // set together with epoch_
  std::atomic<std::uint64_t> epoch_ = 0;  // set once, before the first call is served
};

}  // namespace muster::controller
