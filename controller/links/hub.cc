#include "controller/links/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/engine/model/fetches.h"
#include "common/log/log.h"
#include "common/proto/proto_time.h"
#include "common/rpc/status.h"
#include "common/rpc/tls_port.h"
#include "common/spec/keys/values.h"
#include "common/store/rclone.h"
#include "controller/core/hello.h"
#include "controller/core/stores/stores.h"
#include "controller/launch/launch.h"
#include "controller/links/no_part.h"

namespace muster::controller {
namespace {

// Bounds of the questions that agents have asked and the strand has not answered yet. They allow
// more nodes than there are, each with a Hello of some kilobytes.
constexpr std::size_t kAskedMost = 20'000, kAskedBytesMost = 256 << 20;

// An agent of this release sends no more than this. Ranks and shards are bounded where they are
// kept.
void bound_heartbeat(v1::Heartbeat& heartbeat) {
  constexpr int kSamples = 1'000;
  auto& readings = *heartbeat.mutable_readings();
  if (readings.size() > core::kPresentMost)
    readings.DeleteSubrange(core::kPresentMost, readings.size() - core::kPresentMost);
  for (v1::AttemptReading& reading : readings) {
    auto& samples = *reading.mutable_samples();
    if (samples.size() > kSamples) samples.DeleteSubrange(0, samples.size() - kSamples);
  }
}

// "has rclone 1.53.3, and 1.60 or later is needed; ..."
std::string lacks_rclone(const v1::Inventory& inventory) {
  const std::string has = inventory.rclone().empty()
                              ? "has no rclone on its agent's PATH"
                              : "has rclone " + spec::shown(inventory.rclone());
  return fmt::format("{}, and {} or later is needed; install it there, and start the agent again",
                     has, store::kRcloneLeast);
}

}  // namespace

Hub::Hub(Shell& shell, logs::LogStore& store, async::Loop& work, LogsCollected& collected,
         const Clock& clock, Options options, PushLogsMaker push_logs)
    : shell_(shell),
      store_(store),
      work_(work),
      collected_(collected),
      clock_(clock),
      options_(std::move(options)),
      push_logs_(std::move(push_logs)),
      peers_(options_.heartbeat_interval),
      book_(options_.cluster_out) {}

void Hub::set_start(const Shell::Started& started) {
  shell_.strand().assert_idle();
  peers_.set_start(started.loaded);
  epoch_.store(started.epoch.value, std::memory_order_release);
}

void Hub::set_authorities(v1::Authorities authorities) {
  shell_.strand().post("authorities", [this, authorities = std::move(authorities)] {
    shell_.strand().assert_on();
    authorities_ = authorities;
    for (const auto& [node, accepted] : sessions_) {
      if (accepted.session->connection().value != 0) send_authorities(*accepted.session);
    }
  });
}

// An agent of this machine's unix socket has no certificate.
void Hub::send_authorities(Session& session) {
  shell_.strand().assert_on();
  if (session.caller().identity && !authorities_.ca().empty()) session.trust(authorities_);
}

grpc::ServerBidiReactor<v1::ConnectRequest, v1::ConnectResponse>* Hub::Connect(
    grpc::CallbackServerContext* context) {
  return Session::begin(*this, clock_, *context, enter(*context));
}

Revocations::Stay Hub::enter(grpc::ServerContextBase& context) const {
  return options_.revocations != nullptr ? options_.revocations->enter(context)
                                         : Revocations::Stay();
}

Hub::PushLogsReactor* Hub::PushLogs(grpc::CallbackServerContext* context) {
  return push_logs_(context);
}

// --- files from one node to another --------------------------------------------------------------

FileRelay::Taker* Hub::FetchFiles(grpc::CallbackServerContext* context,
                                  const v1::FetchFilesRequest* request) {
  const auto own = rpc::speaks_for(rpc::caller_of(*context), NodeName(request->node()),
                                   "fetching files of another node");
  if (!own && options_.on_refused) options_.on_refused(own.error());
  return files_.fetch(
      *context,
      [this, own, request = *request](FileTransferPtr transfer) {
        if (!own) return FileRelay::refuse(transfer, rpc::to_refusal(own.error()));
        const bool taken = ask(request.ByteSizeLong(), [this, transfer, request](const View& view) {
          find_files(transfer, request, view);
        });
        if (!taken)
          FileRelay::refuse(transfer, {grpc::StatusCode::UNAVAILABLE,
                                       "the controller is overloaded; another start tries again"});
      },
      enter(*context));
}

FileRelay::Giver* Hub::SendFiles(grpc::CallbackServerContext* context, v1::SendFilesResponse*) {
  return files_.send(rpc::caller_of(*context), options_.on_refused, enter(*context));
}

namespace {

// The part of the attempt that is placed on the node that asks, on its present instance. Nullptr:
// there is none.
template <class Request>
const core::NodePart* part_of(const core::Ledger& ledger, const Request& request) {
  const auto job = ledger.jobs.find(JobId(request.job_id()));
  const core::AttemptRecord* attempt =
      job == ledger.jobs.end() ? nullptr : job->second.attempt(AttemptNo(request.attempt()));
  const core::NodePart* part =
      attempt == nullptr ? nullptr : attempt->part(NodeName(request.node()));
  return part == nullptr || part->placed.instance.str() != request.instance() ||
                 request.cluster_id() != ledger.cluster.str()
             ? nullptr
             : part;
}

// The part of a live attempt for whose start a node asks for something. Null: it is not to start
// it, or not any more.
template <class Request>
const core::NodePart* part_to_start(const core::Ledger& ledger, const Request& request) {
  const core::NodePart* part = part_of(ledger, request);
  return part == nullptr || part->swept ||
                 ledger.jobs.at(JobId(request.job_id()))
                         .attempt(AttemptNo(request.attempt()))
                         ->state != core::AttemptState::Live
             ? nullptr
             : part;
}

template <class Request>
std::string not_to_start(const Request& request) {
  return fmt::format("node '{}' is not to start job '{}' attempt {} (any more)", request.node(),
                     request.job_id(), request.attempt());
}

}  // namespace

// A node gets only what its own order names.
void Hub::find_files(const FileTransferPtr& transfer, const v1::FetchFilesRequest& request,
                     const View& view) {
  shell_.strand().assert_on();
  const auto refuse = [&](grpc::StatusCode code, const std::string& why) {
    FileRelay::refuse(transfer, {code, why});
  };
  const NodeName node(request.node());
  if (part_to_start(view.ledger, request) == nullptr) {
    check_own(view, node, JobId(request.job_id()), AttemptNo(request.attempt()), "fetching files");
    return refuse(grpc::StatusCode::FAILED_PRECONDITION, not_to_start(request));
  }
  const auto job = view.ledger.jobs.find(JobId(request.job_id()));
  const core::AttemptRecord* attempt = job->second.attempt(AttemptNo(request.attempt()));
  const engine::LaunchRequest launch = launch_request(job->second, *attempt, options_.cluster_out);
  const std::vector<v1::Fetch> fetches = engine::fetches(launch, attempt->part_index.at(node));
  if (request.number() >= fetches.size())
    return refuse(grpc::StatusCode::OUT_OF_RANGE, "the order names no such directory");
  const v1::Fetch& what = fetches[request.number()];
  const NodeName source(what.node());
  if (!peers_.is_welcomed(source)) {
    return refuse(grpc::StatusCode::UNAVAILABLE,
                  "it is on that node alone, and the node is not connected; start it again, or go "
                  "on from a checkpoint that is on nodes which are there (--from)");
  }
  Session& session = *sessions_.at(source).session;
  const auto ticket =
      files_.open(transfer, {.node = node, .attempt = {job->first, attempt->number}}, source,
                  session.instance());
  if (!ticket) {
    return refuse(grpc::StatusCode::UNAVAILABLE,
                  "the controller passes on as many files as it may at a time; another start tries "
                  "again");
  }
  v1::FilesWanted wanted;
  wanted.set_ticket(*ticket);
  *wanted.mutable_what() = what;
  if (const std::string& user = job->second.spec.runtime().user(); user != "submitter")
    wanted.set_user(user);
  if (!session.want(std::move(wanted)))
    refuse(grpc::StatusCode::UNAVAILABLE,
           "the node does not take its orders; look after that node");
}

// --- secrets -------------------------------------------------------------------------------------

grpc::ServerUnaryReactor* Hub::FetchSecrets(grpc::CallbackServerContext* context,
                                            const v1::FetchSecretsRequest* request,
                                            v1::FetchSecretsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto own =
      rpc::speaks_for(rpc::caller_of(*context), NodeName(request->node()), "fetching secrets");
  if (!own) {
    if (options_.on_refused) options_.on_refused(own.error());
    reactor->Finish(rpc::to_refusal(own.error()));
    return reactor;
  }
  const bool taken =
      ask(request->ByteSizeLong(), [this, reactor, request, response](const View& view) {
        const JobId job(request->job_id());
        const core::NodePart* part = part_of(view.ledger, *request);
        const bool starts = part != nullptr && part_to_start(view.ledger, *request) == part &&
                            !part->idle() && !part->started && !part->start_failed;
        const bool uploads = part != nullptr && (part->uploads || part->uploads_logs);
        if (part == nullptr || (!starts && !uploads) || options_.secrets == nullptr) {
          check_own(view, NodeName(request->node()), job, AttemptNo(request->attempt()),
                    "fetching secrets");
          return reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION, not_to_start(*request)});
        }
        const core::JobRecord& record = view.ledger.jobs.at(job);
        const core::AttemptRecord& attempt = *record.attempt(AttemptNo(request->attempt()));
        // After the start the node uploads outputs and logs, and gets the keys of their stores
        // alone.
        std::vector<core::PinnedSecret> pinned =
            starts ? attempt.secrets : core::output_keys(view.ledger, record, attempt);
        options_.secrets_loop->post(
            "secrets", [this, reactor, response, spec = record.spec, pinned = std::move(pinned)] {
              auto given = options_.secrets->give(pinned, spec);
              if (!given) return reactor->Finish(rpc::to_status(given.error()));
              *response = *std::move(given);
              reactor->Finish(grpc::Status::OK);
            });
      });
  if (!taken)
    reactor->Finish(
        {grpc::StatusCode::UNAVAILABLE, "the controller is overloaded; another start tries again"});
  return reactor;
}

// --- stores --------------------------------------------------------------------------------------

Result<NodeName> Hub::node_to_check(const View& view, const NodeName& wanted) {
  const auto fails = [&](ErrorCode code, std::string_view why) {
    return fail(code,
                fmt::format("checking a store: node '{}' {}", spec::shown(wanted.str()), why));
  };
  if (!wanted.str().empty()) {
    const auto known = view.ledger.nodes.find(wanted);
    if (known == view.ledger.nodes.end())
      return fails(ErrorCode::NotFound, "is unknown; `muster node ls` lists the nodes");
    if (!store::is_new_enough(known->second.inventory.rclone()))
      return fails(ErrorCode::Unsatisfiable, lacks_rclone(known->second.inventory));
    if (!sessions_.contains(wanted) || !peers_.is_welcomed(wanted))
      return fails(ErrorCode::Unsatisfiable, "is not connected");
    return wanted;
  }
  // The one with the least to do.
  std::optional<NodeName> chosen;
  std::size_t least = 0;
  for (const auto& [name, entry] : sessions_) {
    const auto known = view.ledger.nodes.find(name);
    if (known == view.ledger.nodes.end() || !peers_.is_welcomed(name) ||
        !store::is_new_enough(known->second.inventory.rclone()))
      continue;
    const std::size_t count = checks_.count_of(name);
    if (chosen && count >= least) continue;
    chosen = name;
    least = count;
  }
  if (chosen) return *chosen;
  return fail(ErrorCode::Unsatisfiable,
              fmt::format("checking a store: no connected node has rclone {} or later on its "
                          "agent's PATH; install it there, and start the agent again",
                          store::kRcloneLeast));
}

void Hub::check_store(const NodeName& node, const std::string& user, v1::StoreCheck check,
                      std::function<bool(const std::string&)> ticket, StoreChecks::Done done) {
  // Of those that read views: `done` is called whether or not the read is taken.
  const auto shared = std::make_shared<StoreChecks::Done>(std::move(done));
  const bool taken = shell_.read([this, node, user, check = std::move(check),
                                  ticket = std::move(ticket), shared](const View& view) mutable {
    shell_.strand().assert_on();
    const auto chosen = node_to_check(view, node);
    if (!chosen) return (*shared)(fail(Error(chosen.error())));
    Session& session = *sessions_.at(*chosen).session;
    auto opened = checks_.open(
        *chosen, session.instance(), user, view.now.boot,
        [shared](Result<v1::ReportStoreRequest> report) { (*shared)(std::move(report)); });
    if (!opened) return (*shared)(fail(std::move(opened.error())));
    if (!ticket(*opened)) return checks_.drop(*opened);  // nobody waits any more
    check.set_ticket(*opened);
    // It lets a node call an address that a user has given, with a key of his.
    log::info("a node checks a store", {{"node", chosen->str()},
                                        {"user", user},
                                        {"url", check.url()},
                                        {"endpoint", check.profile().endpoint()}});
    if (session.want(std::move(check))) return;
    checks_.drop(*opened);
    (*shared)(
        fail(ErrorCode::Unsatisfiable, fmt::format("checking a store: node '{}' does not take "
                                                   "its orders; see to that node",
                                                   chosen->str())));
  });
  if (!taken)
    (*shared)(fail(ErrorCode::ResourceExhausted,
                   "checking a store: too many requests are waiting; try again in a moment"));
}

grpc::ServerUnaryReactor* Hub::ReportStore(grpc::CallbackServerContext* context,
                                           const v1::ReportStoreRequest* request,
                                           v1::ReportStoreResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto own =
      rpc::speaks_for(rpc::caller_of(*context), NodeName(request->node()), "reporting a store");
  if (!own) {
    if (options_.on_refused) options_.on_refused(own.error());
    reactor->Finish(rpc::to_refusal(own.error()));
    return reactor;
  }
  const auto taken = checks_.report(*request);
  reactor->Finish(taken ? grpc::Status::OK : rpc::to_status(taken.error()));
  return reactor;
}

bool Hub::ask(std::size_t bytes, ReadFn read) {
  struct Place {
    std::shared_ptr<Asking> asking;
    std::size_t bytes;
    Place(std::shared_ptr<Asking> among, std::size_t taken)
        : asking(std::move(among)), bytes(taken) {
      asking->bytes += bytes;
      ++asking->questions;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      asking->bytes -= bytes;
      --asking->questions;
    }
  };
  auto place = std::make_unique<Place>(asking_, bytes);
  if (asking_->questions > kAskedMost || asking_->bytes > kAskedBytesMost) return false;
  shell_.read_always(
      [place = std::move(place), read = std::move(read)](const View& view) mutable { read(view); });
  return true;
}

// --- hello ---------------------------------------------------------------------------------------

void Hub::on_hello(const SessionPtr& session, v1::Hello hello, Now arrived) {
  if (auto own = rpc::speaks_for(session->caller(), session->node(), "connecting an agent"); !own) {
    if (options_.on_refused) options_.on_refused(own.error());
    return session->refuse(rpc::to_refusal(own.error()));
  }
  const std::size_t bytes = hello.ByteSizeLong();
  if (bytes > core::kHelloBytesMost) {
    return session->refuse(
        {grpc::StatusCode::INVALID_ARGUMENT,
         fmt::format("connecting an agent: its Hello has {} bytes, at most {} are taken", bytes,
                     core::kHelloBytesMost)});
  }
  const bool taken = ask(bytes, [this, session, hello = std::move(hello), arrived](
                                    const View& view) { judge(session, hello, arrived, view); });
  if (!taken)
    session->refuse({grpc::StatusCode::UNAVAILABLE,
                     "connecting an agent: the controller is overloaded; try again"});
}

core::Peers::View Hub::durable(const View& view) const {
  return {.ledger = view.ledger,
          .presence = view.presence,
          .paused = view.paused,
          .last = shell_.durable()};
}

void Hub::judge(const SessionPtr& session, const v1::Hello& hello, Now arrived, const View& view) {
  shell_.strand().assert_on();
  // Its on_gone has already been called, so nobody would remove the peer again.
  if (session->is_gone()) return;
  const ConnectionId connection(++connections_);
  core::Peers::Judgement judgement =
      peers_.hello(hello, connection, session->peer(), arrived, durable(view));
  if (judgement.refusal) {
    // Without the port, which is another one at each try.
    const std::string from = session->peer().substr(0, session->peer().rfind(':'));
    if (options_.on_refused)
      options_.on_refused(Error(*judgement.refusal)
                              .in(fmt::format("connecting the agent of node '{}' from '{}'",
                                              session->node().str(), from)));
    session->refuse(rpc::to_status(*judgement.refusal));
    if (judgement.behind.empty()) return;
    shell_.pause(core::pause_text(judgement.behind));
    if (options_.on_behind)
      options_.on_behind({.code = ErrorCode::DataLoss, .message = std::move(judgement.behind)},
                         hello.lineage().generation());
    return;
  }
  if (judgement.replaced) end_stream(*judgement.replaced, arrived);
  sessions_[session->node()] = {.session = session, .connection = connection};
  shell_.report_and_observe(
      std::move(judgement.input), std::move(judgement.then), arrived,
      [this, session, connection](const Outcome& outcome, const View& now_durable) {
        registered(session, connection, outcome, now_durable);
      });
}

void Hub::registered(const SessionPtr& session, ConnectionId connection, const Outcome& outcome,
                     const View& view) {
  shell_.strand().assert_on();
  auto [refusal, welcome] = peers_.registered({.node = session->node(), .connection = connection},
                                              outcome.refusal, durable(view));
  if (refusal) return session->refuse(rpc::to_status(*refusal));
  if (!welcome) return;
  welcome->set_version(options_.version);
  welcome->set_outputs_root(options_.outputs_root);
  session->accept(connection, std::move(*welcome));
  send_authorities(*session);
  log::info("agent connected", {{"node", session->node().str()},
                                {"instance", session->instance().str()},
                                {"connection", connection.value}});
  tell(session->node(), view, true);
}

// After this, nothing more is read from the agent's stream; the agent may connect again.
void Hub::end_stream(const core::Peers::Ending& ending, Now at) {
  const auto& [node, connection] = ending.stream;
  shell_.observe(core::Disconnected{.node = node, .connection = connection}, at);
  files_.node_gone(node);
  checks_.node_gone(node);  // requests that it was not sent yet are never sent
  sessions_.extract(node).mapped().session->refuse(rpc::to_status(ending.why));
}

// --- up ------------------------------------------------------------------------------------------

void Hub::on_facts(const SessionPtr& session, v1::Facts facts, Now arrived) {
  const std::size_t cost = waiting_cost(facts);
  if (facts.facts().empty()) session->facts_taken(cost);
  facts.DiscardUnknownFields();
  for (int i = 0; i < facts.facts_size(); ++i) {
    ReplyFn reply = [this, node = session->node(), job = JobId(facts.facts(i).job_id()),
                     attempt = AttemptNo(facts.facts(i).attempt())](const Outcome& outcome,
                                                                    const View& view) {
      check_own(view, node, job, attempt, "reporting facts");
      // Acknowledged even so: sending the fact again would not change the answer.
      if (outcome.refusal && view.paused.empty())
        log::warn("a fact was not taken",
                  {{"node", node.str()}, {"why", outcome.refusal->message}});
    };
    if (i + 1 == facts.facts_size()) {
      reply = [session, cost, sequence = facts.sequence(), log_refusal = std::move(reply)](
                  const Outcome& outcome, const View& view) mutable {
        session->facts_taken(cost);
        log_refusal(outcome, view);
        if (!view.paused.empty()) return;  // the agent sends it again, to the next controller
        v1::FactAck ack;
        ack.set_sequence(sequence);
        ack.set_index(outcome.index.value);
        session->ack(std::move(ack));
      };
    }
    v1::Fact& fact = *facts.mutable_facts(i);
    if (options_.secrets != nullptr) options_.secrets->hide(fact);
    const core::SweptHeard swept{.node = session->node(),
                                 .connection = session->connection(),
                                 .job = JobId(fact.job_id()),
                                 .attempt = AttemptNo(fact.attempt())};
    const bool is_swept = fact.has_swept();
    shell_.report(
        core::ReportFact{
            .node = session->node(), .instance = session->instance(), .fact = std::move(fact)},
        arrived, std::move(reply));
    if (is_swept) shell_.observe(swept, arrived);
  }
}

// decide() takes nothing of what a node says of an attempt of others. A node that tries is written
// down.
void Hub::check_own(const View& view, const NodeName& node, const JobId& job, AttemptNo attempt,
                    std::string_view doing) const {
  const auto found = view.ledger.jobs.find(job);
  const core::AttemptRecord* placed =
      found == view.ledger.jobs.end() ? nullptr : found->second.attempt(attempt);
  if (placed == nullptr || placed->part(node) != nullptr || !options_.on_refused) return;
  options_.on_refused(no_part(doing, node, job, attempt));
}

void Hub::on_heartbeat(const SessionPtr& session, v1::Heartbeat heartbeat, Now arrived) {
  bound_heartbeat(heartbeat);
  v1::HeartbeatAck ack;
  ack.set_number(heartbeat.number());
  ack.set_epoch(epoch_.load(std::memory_order_acquire));
  *ack.mutable_at() = to_proto(arrived.wall);
  const NodeName& node = session->node();
  const ConnectionId connection = session->connection();
  shell_.observe(
      core::HeartbeatHeard{
          .node = node, .connection = connection, .heartbeat = std::move(heartbeat)},
      arrived);
  // Observed before the acknowledgement leaves, and with the heartbeat's arrival time. The agent
  // counts its grace from the sending, which is even earlier.
  shell_.observe(core::HeartbeatAcked{.node = node, .connection = connection}, arrived);
  session->ack(std::move(ack));
}

void Hub::on_unsupported(const SessionPtr& session, v1::Unsupported unsupported) {
  log::warn("an agent does not support an order; upgrade it", {{"node", session->node().str()},
                                                               {"job", unsupported.job_id()},
                                                               {"attempt", unsupported.attempt()},
                                                               {"why", unsupported.text()}});
}

void Hub::on_gone(const SessionPtr& session, Now at) {
  shell_.strand().post("agent-gone", [this, session, at] {
    shell_.strand().assert_on();
    const NodeName& node = session->node();
    const auto accepted = sessions_.find(node);
    // the session was never accepted, or was replaced
    if (accepted == sessions_.end() || accepted->second.session != session) return;
    const ConnectionId connection = accepted->second.connection;
    sessions_.erase(accepted);
    peers_.gone({.node = node, .connection = connection});
    shell_.observe(core::Disconnected{.node = node, .connection = connection}, at);
    files_.node_gone(node);
    checks_.node_gone(node);
    log::info("agent disconnected", {{"node", node.str()}});
  });
}

void Hub::on_heartbeat(const core::HeartbeatHeard& heartbeat, const core::Presence& presence) {
  shell_.strand().assert_on();
  if (peers_.has_leftovers(heartbeat)) {
    // if this is refused, the next heartbeat tries again
    (void)ask(0, [this, node = heartbeat.node](const View& view) { tell(node, view, false); });
  }
  const auto accepted = sessions_.find(heartbeat.node);
  if (accepted == sessions_.end() || accepted->second.connection != heartbeat.connection) return;
  for (const v1::AttemptReading& reading : heartbeat.heartbeat.readings()) {
    if (reading.samples().empty()) continue;
    const JobId job(reading.job_id());
    const AttemptNo attempt(reading.attempt());
    const auto seen = presence.attempts.find({job, attempt});
    if (seen == presence.attempts.end()) continue;
    // The reporting rank is the lowest rank that prints steps.
    const auto reporting_rank = std::ranges::find_if(
        seen->second.ranks, [](const auto& entry) { return entry.second.step >= 0; });
    if (reporting_rank == seen->second.ranks.end()) continue;
    const auto& [rank, state] = *reporting_rank;
    std::vector<logs::SeriesPoint> points;
    for (const v1::StepSample& sample : reading.samples()) {
      if (sample.rank() != rank.value) continue;
      // After a step that is none, the file of the series would take no true one of this attempt.
      if (sample.step() < 0 || (state.total > 0 && sample.step() > state.total)) continue;
      const bool has_loss = sample.has_loss() && std::isfinite(sample.loss());
      const bool not_finite = !has_loss && (sample.has_loss() || sample.loss_not_finite());
      const double loss = not_finite ? std::numeric_limits<double>::quiet_NaN() : sample.loss();
      points.push_back({.at = to_wall(sample.at()),
                        .attempt = attempt,
                        .step = sample.step(),
                        .loss = loss,
                        .has_loss = has_loss});
    }
    // The series comes from the rank's log, so who may send the log may add to the series.
    if (points.empty() || !collected_.is_of({job, attempt, rank}, heartbeat.node,
                                            accepted->second.session->instance()))
      continue;
    work_.post("series", [this, job, points = std::move(points)] {
      if (auto added = store_.add_points(job, points); !added)
        log::warn("series points were not kept as they should be",
                  {{"job", job.str()}, {"why", added.error().message}});
    });
  }
}

// --- down ----------------------------------------------------------------------------------------

void Hub::on_release(std::span<const journal::Row> rows, const View& view) {
  shell_.strand().assert_on();
  for (const journal::Row& row : rows) {
    const auto over = [&](const auto& event) MUSTER_REQUIRES(shell_.strand()) {
      book_.drop(event.job, event.attempt);
      unlaunchable_.erase({event.job, event.attempt});
    };
    if (const auto* broke = std::get_if<core::AttemptBroke>(&row.event.body))
      files_.drop({broke->job, broke->attempt});
    if (const auto* ended = std::get_if<core::AttemptEnded>(&row.event.body)) over(*ended);
    if (const auto* done = std::get_if<core::AttemptCompleted>(&row.event.body)) over(*done);
  }
  for (const core::Peers::Ending& ending : peers_.released(rows, view.ledger))
    end_stream(ending, view.now);
  // Replies leave after this: who is answered that a certificate is revoked finds it so.
  const bool changed = std::ranges::any_of(rows, [](const journal::Row& row) {
    return std::holds_alternative<core::CertificateIssued>(row.event.body) ||
           std::holds_alternative<core::CertificateRevoked>(row.event.body);
  });
  if (changed && options_.revocations != nullptr)
    options_.revocations->publish(core::Revoked(view.ledger.access));
  if (options_.secrets != nullptr) options_.secrets->released(rows);
  // Runs before any node is ordered to run a job whose logs would be refused.
  collected_.on_release(rows);
  for (const NodeName& node : core::touched_nodes(rows, view.ledger)) tell(node, view, false);
}

void Hub::tell(const NodeName& node, const View& view, bool always) {
  shell_.strand().assert_on();
  auto wanted = peers_.orders(node, durable(view), always);
  if (!wanted) return;
  core::NodeOrders orders{
      .standing = std::move(wanted->standing), .runs = {}, .running = std::move(wanted->running)};
  for (const core::Assignment& one : wanted->runs) {
    if (auto run = book_.run(view.ledger, node, one)) {
      orders.runs.push_back(std::move(*run));
    } else if (unlaunchable_.emplace(one.job, one.attempt).second) {
      cannot_launch(node, one, run.error(), view);
    }
  }
  sessions_.at(node).session->send(std::move(orders));
}

// Reports a start failure in the node's name, so that the attempt breaks at once with a reason, and
// not at its start time-out.
void Hub::cannot_launch(const NodeName& node, const core::Assignment& wanted, const Error& why,
                        const View& view) {
  log::error("an attempt cannot be launched", {{"job", wanted.job.str()},
                                               {"attempt", wanted.attempt.value},
                                               {"node", node.str()},
                                               {"why", why.message}});
  const Now now = clock_.now();
  v1::Fact fact;
  fact.set_job_id(wanted.job.str());
  fact.set_attempt(wanted.attempt.value);
  *fact.mutable_at() = to_proto(now.wall);
  fact.mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
  fact.mutable_start_failed()->set_text(why.message);
  const core::NodePart& part = *view.ledger.jobs.at(wanted.job).attempt(wanted.attempt)->part(node);
  shell_.report(
      core::ReportFact{.node = node, .instance = part.placed.instance, .fact = std::move(fact)},
      now, {});
}

}  // namespace muster::controller
