// The AgentService of the controller's server: it connects agents' sessions, core::Peers, which
// decides about them, and the shell. main() of the controller owns it. It runs on gRPC's threads
// and on the shell's strand:
//
//   gRPC's threads   convert, stamp, pass to the shell
//   shell's strand   peers_, sessions_, book_: acts on what Peers decides, from durable state
//   work loop        writes series points to the log store
//
// Rules, beside those of core::Peers:
// - When a Hello shows that the journal is older than it must be, the shell is paused, and the
//   daemon is notified (on_behind). From then on no fact is acknowledged, so that its agent sends
//   it again to the next controller. Connected agents stay connected, and their leases are renewed.
// - Heartbeats are answered at once, without a sync, because presence is not durable.
// - A lost connection is observed at once.
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
#include <string_view>
#include <vector>

#include "common/async/loop.h"
#include "controller/access/revocations.h"
#include "controller/core/peers.h"
#include "controller/links/file_relay.h"
#include "controller/links/logs_collected.h"
#include "controller/links/order_book.h"
#include "controller/links/session.h"
#include "controller/links/store_checks.h"
#include "controller/logs/log_store.h"
#include "controller/secrets/job_secrets.h"
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
    // that is known. `generation` is the one that the agent has seen (common/base/lineage.h). The
    // daemon makes both durable.
    std::function<void(const Error&, std::uint64_t generation)> on_behind;
    // A node spoke for another one, or of an attempt of which it has no part (no_part.h). Any
    // thread. Empty: nobody is interested.
    std::function<void(const Error&)> on_refused = {};
    // Gets what the ledger says of certificates, and ends streams. Null: no certificates are
    // checked.
    Revocations* revocations = nullptr;
    std::string outputs_root = {};        // the agents check it; empty: they check none
    JobSecrets* secrets = nullptr;        // null: no job has any
    async::Loop* secrets_loop = nullptr;  // reads values; set with `secrets`
  };
  using PushLogsReactor = grpc::ServerBidiReactor<v1::PushLogsRequest, v1::PushLogsResponse>;
  // Makes the receiver of one log stream; never null.
  using PushLogsMaker = std::function<PushLogsReactor*(grpc::CallbackServerContext*)>;

  Hub(Shell& shell, logs::LogStore& store, async::Loop& work, LogsCollected& collected,
      const Clock& clock, Options options, PushLogsMaker push_logs);

  void set_start(const Shell::Started& started);  // call this before the shell has work

  // What agents that call over TCP trust from now on. Any thread; an empty one is sent to nobody.
  void set_authorities(v1::Authorities authorities);

  // AgentService
  grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext* context) override;
  PushLogsReactor* PushLogs(grpc::CallbackServerContext* context) override;
  FileRelay::Taker* FetchFiles(grpc::CallbackServerContext* context,
                               const v1::FetchFilesRequest* request) override;
  FileRelay::Giver* SendFiles(grpc::CallbackServerContext* context,
                              v1::SendFilesResponse* response) override;
  grpc::ServerUnaryReactor* FetchSecrets(grpc::CallbackServerContext* context,
                                         const v1::FetchSecretsRequest* request,
                                         v1::FetchSecretsResponse* response) override;
  grpc::ServerUnaryReactor* ReportStore(grpc::CallbackServerContext* context,
                                        const v1::ReportStoreRequest* request,
                                        v1::ReportStoreResponse* response) override;

  // Any thread. A node lists what `check` names: this one, or if it is empty the one that has
  // rclone and the least to do. `done` is called once, here or later, unless drop_check() comes
  // before; `ticket` is called before it, if a node is to be asked, and says whether somebody still
  // waits. Errors: NotFound, Unreachable, ResourceExhausted.
  void check_store(const NodeName& node, const std::string& user, v1::StoreCheck check,
                   std::function<bool(const std::string&)> ticket, StoreChecks::Done done);
  void drop_check(const std::string& ticket) { checks_.drop(ticket); }

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
  struct Accepted {
    SessionPtr session;
    ConnectionId connection;
  };
  // Passes an agent's question to the strand. It does not use the clients' inbox, which clients may
  // have filled; what waits for agents has bounds of its own.
  [[nodiscard]] bool ask(std::size_t bytes, ReadFn read);
  [[nodiscard]] Revocations::Stay enter(grpc::ServerContextBase& context) const;
  void judge(const SessionPtr& session, const v1::Hello& hello, Now arrived, const View& view);
  void registered(const SessionPtr& session, ConnectionId connection, const Outcome& outcome,
                  const View& view);
  void end_stream(const core::Peers::Ending& ending, Now at) MUSTER_REQUIRES(shell_.strand());
  void tell(const NodeName& node, const View& view, bool always);
  void send_authorities(Session& session);
  void find_files(const FileTransferPtr& transfer, const v1::FetchFilesRequest& request,
                  const View& view);
  Result<NodeName> node_to_check(const View& view, const NodeName& wanted)
      MUSTER_REQUIRES(shell_.strand());
  void check_own(const View& view, const NodeName& node, const JobId& job, AttemptNo attempt,
                 std::string_view doing) const;
  [[nodiscard]] core::Peers::View durable(const View& view) const;
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
  StoreChecks checks_;

  core::Peers peers_ MUSTER_GUARDED_BY(shell_.strand());
  std::map<NodeName, Accepted> sessions_
      MUSTER_GUARDED_BY(shell_.strand());  // those that Peers accepted
  OrderBook book_ MUSTER_GUARDED_BY(shell_.strand());
  // Of live attempts. Each is logged once.
  std::set<core::AttemptKey> unlaunchable_ MUSTER_GUARDED_BY(shell_.strand());
  v1::Authorities authorities_ MUSTER_GUARDED_BY(shell_.strand());
  std::uint64_t connections_ MUSTER_GUARDED_BY(shell_.strand()) = 0;

  struct Asking {
    std::atomic<std::size_t> questions = 0, bytes = 0;
  };
  const std::shared_ptr<Asking> asking_ = std::make_shared<Asking>();

  std::atomic<std::uint64_t> epoch_ = 0;  // set once, before the first call is served
};

}  // namespace muster::controller
