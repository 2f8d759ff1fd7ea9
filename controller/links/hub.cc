#include "controller/links/hub.h"

#include <google/protobuf/util/time_util.h>

#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"

namespace muster::controller {
namespace {

// A stream that ends before it began.
template <class Reactor>
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

WallTime to_wall(const google::protobuf::Timestamp& time) { return WallTime(std::chrono::seconds(time.seconds()) + std::chrono::nanoseconds(time.nanos())); }

grpc::Status refused(std::string text) { return {grpc::StatusCode::FAILED_PRECONDITION, std::move(text)}; }

bool sound_name(const std::string& name) {
  if (name.empty() || name.size() > 63) return false;
  for (const char c : name) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alphanumeric && c != '.' && c != '_' && c != '-') return false;
  }
  return name.front() != '.' && name.front() != '_' && name.front() != '-';
}

}  // namespace

bool journal_behind(const v1::Hello& hello, const core::Ledger& ledger, JournalIndex last) {
  return hello.cluster_id() == ledger.cluster.str() && hello.acked_index() > last.value;
}

grpc::Status judge_hello(const v1::Hello& hello, const core::Ledger& ledger, JournalIndex last, bool accept_loss) {
  const std::string who = "connecting node '" + hello.node() + "'";
  if (!sound_name(hello.node()))
    return {grpc::StatusCode::INVALID_ARGUMENT, who + ": not a node name; letters, digits, '.', '_', '-', at most 63, the first a letter or digit"};
  if (hello.instance().empty() || hello.boot_id().empty()) return {grpc::StatusCode::INVALID_ARGUMENT, who + ": Hello without instance or boot id"};
  if (hello.protocol_min() > kProtocolMax || hello.protocol_max() < kProtocolMin) {
    return refused(who + ": it speaks protocol " + std::to_string(hello.protocol_min()) + ".." + std::to_string(hello.protocol_max()) + ", this controller " +
                   std::to_string(kProtocolMin) + ".." + std::to_string(kProtocolMax) + "; upgrade the older one");
  }
  if (!hello.cluster_id().empty() && hello.cluster_id() != ledger.cluster.str()) {
    return refused(who + ": it belongs to cluster '" + hello.cluster_id() + "', this is '" + ledger.cluster.str() +
                   "'; give the agent another state directory to move it here");
  }
  if (hello.highest_epoch() > ledger.epoch.value) {
    return refused(who + ": it has seen controller epoch " + std::to_string(hello.highest_epoch()) + ", this one is only at " +
                   std::to_string(ledger.epoch.value) + ": an old controller, or an old copy of its journal");
  }
  if (journal_behind(hello, ledger, last) && !accept_loss) {
    return refused(who + ": it was acknowledged up to journal index " + std::to_string(hello.acked_index()) + ", this journal ends at " +
                   std::to_string(last.value) + ": the journal is older than it must be; restore the newer one, or start the controller with --accept-loss");
  }
  return grpc::Status::OK;
}

Hub::Hub(Shell& shell, logs::LogStore& store, async::Loop& work, LogsCollected& collected, const Clock& clock, Options options, PushLogsMaker push_logs)
    : shell_(shell),
      store_(store),
      work_(work),
      collected_(collected),
      clock_(clock),
      options_(std::move(options)),
      push_logs_(std::move(push_logs)),
      book_(options_.cluster_out) {}

grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Hub::Connect(grpc::CallbackServerContext* context) {
  if (const grpc::Status allowed = rpc::check_caller(*context, options_.token); !allowed.ok()) {
    return new Refusal<grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>>(allowed);
  }
  return Session::begin(*this, clock_, context->peer());
}

Hub::PushLogsReactor* Hub::PushLogs(grpc::CallbackServerContext* context) {
  if (const grpc::Status allowed = rpc::check_caller(*context, options_.token); !allowed.ok()) return new Refusal<PushLogsReactor>(allowed);
  return push_logs_(context);
}

// --- hello -----------------------------------------------------------------------------------------------------------------------------

void Hub::on_hello(const SessionPtr& session, v1::Hello hello, Now arrived) {
  const bool taken = shell_.read([this, session, hello = std::move(hello), arrived](const View& view) { judge(session, hello, arrived, view); });
  if (!taken) session->refuse({grpc::StatusCode::UNAVAILABLE, "connecting an agent: the controller is overloaded; try again"});
}

void Hub::judge(const SessionPtr& session, const v1::Hello& hello, Now arrived, const View& view) {
  if (session->is_gone()) return;  // its on_gone has passed already, nobody would take the peer away again
  grpc::Status status = judge_hello(hello, view.ledger, shell_.durable(), options_.accept_loss);
  const auto holder = peers_.find(session->node());
  if (status.ok() && holder != peers_.end() && holder->second.session->instance() != session->instance()) {
    status = {grpc::StatusCode::ABORTED, "connecting node '" + session->node().str() + "' (instance '" + session->instance().str() +
                                             "'): the name is held by instance '" + holder->second.session->instance().str() + "' from " +
                                             holder->second.session->peer() + "; two agents need two names"};
  }
  if (!status.ok()) {
    log::warn("an agent was refused", {{"node", session->node().str()}, {"peer", session->peer()}, {"why", status.error_message()}});
    session->refuse(status);
    if (journal_behind(hello, view.ledger, shell_.durable()) && !options_.accept_loss && options_.on_behind) {
      options_.on_behind({.code = ErrorCode::DataLoss, .message = status.error_message()});
    }
    return;
  }
  if (holder != peers_.end()) {
    const SessionPtr old = holder->second.session;
    shell_.observe(core::Disconnected{.node = old->node(), .connection = holder->second.connection}, arrived);
    peers_.erase(holder);
    old->refuse({grpc::StatusCode::ABORTED, "agent stream of node '" + old->node().str() + "': replaced by a newer one of the same agent"});
  }
  const ConnectionId connection(++connections_);
  Peer& peer = peers_[session->node()];
  peer.session = session;
  peer.connection = connection;
  for (const v1::HeldAttempt& held : hello.held()) peer.held.insert({JobId(held.job_id()), AttemptNo(held.attempt())});
  const core::RegisterNode input{
      .node = session->node(), .instance = session->instance(), .boot_id = BootId(hello.boot_id()), .inventory = hello.inventory(), .version = hello.version()};
  const core::Connected then{.node = session->node(),
                             .connection = connection,
                             .instance = session->instance(),
                             .held = {hello.held().begin(), hello.held().end()},
                             .boot_id = BootId(hello.boot_id())};
  shell_.report_and_observe(input, then, arrived, [this, session, connection](const Outcome& outcome, const View& now_durable) {
    const auto found = peers_.find(session->node());
    if (found == peers_.end() || found->second.session != session) return;  // gone, or replaced, meanwhile
    if (outcome.refusal) {
      session->refuse(rpc::to_status(*outcome.refusal));
      return;
    }
    welcome(session, connection, now_durable);
  });
}

void Hub::welcome(const SessionPtr& session, ConnectionId connection, const View& view) {
  v1::Welcome welcome;
  welcome.set_protocol(kProtocolMax);
  welcome.set_cluster_id(view.ledger.cluster.str());
  welcome.set_epoch(view.ledger.epoch.value);
  welcome.set_version(options_.version);
  *welcome.mutable_pulse_interval() = google::protobuf::util::TimeUtil::NanosecondsToDuration(options_.pulse_interval.count());
  session->accept(connection, std::move(welcome));
  peers_[session->node()].welcomed = true;
  log::info("agent connected", {{"node", session->node().str()}, {"instance", session->instance().str()}, {"connection", connection.value}});
  tell(session->node(), view, true);
}

// --- up --------------------------------------------------------------------------------------------------------------------------------

void Hub::on_facts(const SessionPtr& session, v1::Facts facts, Now arrived) {
  for (int i = 0; i < facts.facts_size(); ++i) {
    ReplyFn reply = [node = session->node()](const Outcome& outcome, const View&) {
      // Acknowledged all the same: it will not become better by being sent again.
      if (outcome.refusal) log::warn("a fact was not taken", {{"node", node.str()}, {"why", outcome.refusal->message}});
    };
    if (i + 1 == facts.facts_size()) {
      reply = [session, sequence = facts.sequence(), log_refusal = std::move(reply)](const Outcome& outcome, const View& view) mutable {
        log_refusal(outcome, view);
        v1::FactAck ack;
        ack.set_sequence(sequence);
        ack.set_index(outcome.index.value);
        session->ack(std::move(ack));
      };
    }
    shell_.report(core::ReportFact{.node = session->node(), .instance = session->instance(), .fact = std::move(*facts.mutable_facts(i))}, arrived,
                  std::move(reply));
  }
}

void Hub::on_pulse(const SessionPtr& session, v1::Pulse pulse, Now arrived) {
  v1::PulseAck ack;
  ack.set_number(pulse.number());
  ack.set_epoch(epoch_.load(std::memory_order_acquire));
  const NodeName& node = session->node();
  const ConnectionId connection = session->connection();
  shell_.observe(core::PulseHeard{.node = node, .connection = connection, .pulse = std::move(pulse)}, arrived);
  // Before the ack leaves, and with the pulse's arrival: the agent counts its grace from the sending, which is earlier still.
  shell_.observe(core::PulseAcked{.node = node, .connection = connection}, arrived);
  session->ack(std::move(ack));
}

void Hub::on_gone(const SessionPtr& session, Now at) {
  shell_.strand().post("agent-gone", [this, session, at] {
    const auto peer = peers_.find(session->node());
    if (peer == peers_.end() || peer->second.session != session) return;  // never accepted, or replaced
    shell_.observe(core::Disconnected{.node = session->node(), .connection = peer->second.connection}, at);
    peers_.erase(peer);
    log::info("agent disconnected", {{"node", session->node().str()}});
  });
}

void Hub::on_pulse(const core::PulseHeard& pulse, const core::Presence& presence) {
  for (const v1::AttemptReading& reading : pulse.pulse.readings()) {
    if (reading.samples().empty()) continue;
    const JobId job(reading.job_id());
    const AttemptNo attempt(reading.attempt());
    const auto seen = presence.attempts.find({job, attempt});
    if (seen == presence.attempts.end()) continue;
    // The spokesman: the lowest rank that prints steps.
    const auto spokesman = std::ranges::find_if(seen->second.ranks, [](const auto& entry) { return entry.second.step >= 0; });
    if (spokesman == seen->second.ranks.end()) continue;
    std::vector<logs::SeriesPoint> points;
    for (const v1::StepSample& sample : reading.samples()) {
      if (sample.rank() != spokesman->first.value) continue;
      points.push_back({.at = to_wall(sample.at()), .attempt = attempt, .step = sample.step(), .loss = sample.loss(), .has_loss = sample.has_loss()});
    }
    if (points.empty()) continue;
    work_.post("series", [this, job, points = std::move(points)] {
      if (auto added = store_.add_points(job, points); !added) log::warn("series points were lost", {{"job", job.str()}, {"why", added.error().message}});
    });
  }
}

// --- down ------------------------------------------------------------------------------------------------------------------------------

void Hub::on_release(std::span<const journal::Row> rows, const View& view) {
  for (const journal::Row& row : rows) {
    if (const auto* ended = std::get_if<core::AttemptEnded>(&row.event.body)) book_.drop(ended->job, ended->attempt);
    if (const auto* done = std::get_if<core::AttemptCompleted>(&row.event.body)) book_.drop(done->job, done->attempt);
  }
  for (const NodeName& node : touched_nodes(rows, view.ledger)) tell(node, view, false);
  collected_.on_release(rows);
}

void Hub::tell(const NodeName& node, const View& view, bool always) {
  const auto peer = peers_.find(node);
  if (peer == peers_.end() || !peer->second.welcomed) return;
  std::vector<core::Assignment> wanted = core::desired(view.ledger, node);
  for (const auto& [job, attempt] : peer->second.held) {
    const bool mentioned = std::ranges::any_of(wanted, [&](const core::Assignment& one) { return one.job == job && one.attempt == attempt; });
    if (!mentioned && core::may_forget(view.ledger, node, job, attempt)) wanted.push_back({.job = job, .attempt = attempt, .want = core::Want::Forget});
  }
  if (!always && wanted == peer->second.told) return;
  peer->second.session->send(book_.orders(view.ledger, node, wanted));
  peer->second.told = std::move(wanted);
}

}  // namespace muster::controller
