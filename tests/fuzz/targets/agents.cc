// Everything that an agent may send: Hello, facts and heartbeats of two nodes, to a controller with
// a few jobs. The input is text, so that people can read it. "== n0" begins a ConnectRequest of
// node n0 (protobuf's text format); "== later 10" lets ten seconds pass. No input may reach an
// assertion, write what the journal cannot read again, give a device away twice, or keep proposals
// from coming to an end.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "controller/core/peers.h"
#include "controller/core/turn.h"
#include "controller/journal/codec.h"
#include "muster/v1/agent_service.pb.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::core;

constexpr std::size_t kRoundsMost = 500;  // of proposals that follow one message

v1::JobSpec job_of(const std::string& name, std::uint32_t nodes, std::uint32_t devices,
                   const std::string& engine) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.set_engine(engine);
  spec.mutable_resources()->set_nodes(nodes);
  spec.mutable_resources()->set_devices(devices);
  spec.mutable_resources()->set_type("auto");
  spec.mutable_launch()->set_lockstep(true);
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
  spec.mutable_checkpoint()->set_layout("megatron");
  spec.mutable_success()->set_exit0(true);
  spec.mutable_recovery()->set_max_restarts(20);
  return spec;
}

class Cluster : private TurnWatcher {
 public:
  Cluster() {
    state_.presence.listening_since = now_.boot;
    (void)first_turn(state_, {.now = now_, .new_cluster = ClusterId("c"), .version = "test"},
                     limits_, *this);
    submit("j1", job_of("one", 1, 2, "torch"));
    submit("j2", job_of("two", 2, 1, "torch"));
    submit("j3", job_of("three", 1, 1, "command"));
    v1::JobSpec script = job_of("four", 1, 1, "command");
    script.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
    submit("j4", script);
  }

  void later(std::uint32_t seconds) {
    const Duration by = std::chrono::seconds(seconds % 100'000);
    now_.wall += by;
    now_.boot += by;
    settle();
    release();
  }
  void hear(const std::string& node, const v1::ConnectRequest& request) {
    now_.wall += std::chrono::milliseconds(1);
    now_.boot += std::chrono::milliseconds(1);
    if (request.has_hello()) hello(node, request.hello());
    if (request.has_facts()) {
      for (const v1::Fact& fact : request.facts().facts()) reported(node, fact);
    }
    if (request.has_heartbeat() && connected_.contains(node)) {
      const auto& [connection, instance] = connected_.at(node);
      see(HeartbeatHeard{
          .node = NodeName(node), .connection = connection, .heartbeat = request.heartbeat()});
      see(HeartbeatAcked{.node = NodeName(node), .connection = connection});
      if (peers_.has_leftovers(
              {.node = NodeName(node), .connection = connection, .heartbeat = request.heartbeat()}))
        (void)peers_.orders(NodeName(node), view(), false);
    }
    settle();
    release();
    check();
  }

 private:
  void after(const Row& row, const Ledger& /*ledger*/) override {
    const auto again = journal::decode(journal::encode(row.event));
    require(again.has_value(), "what is written can be read again",
            again ? "" : again.error().message);
    rows_.push_back(row);
  }
  Turned take(TurnItem item) {
    return turn(state_, {.items = {&item, 1}, .now = now_, .limits = limits_, .judge_until = {}},
                *this);
  }
  Answer accept(Input input, std::optional<Observation> then = {}) {
    return take({.heard = now_, .what = Asked{.input = std::move(input), .then = std::move(then)}})
        .answers.front();
  }
  void see(Observation observation) { (void)take({.heard = now_, .what = std::move(observation)}); }
  void submit(const std::string& id, const v1::JobSpec& spec) {
    accept(
        SubmitJob{.job = JobId(id), .request_id = RequestId(), .spec = spec, .spec_hash = "hash"});
    settle();
  }
  void settle() {
    const Turned turned = turn(state_,
                               {.items = {},
                                .now = now_,
                                .limits = limits_,
                                .judge_until = now_.boot,
                                .rounds_max = kRoundsMost},
                               *this);
    if (turned.restless) broken("proposals come to rest");
  }
  // As the hub does, which decides and observes before it welcomes.
  void hello(const std::string& node, v1::Hello hello) {
    hello.set_node(node);
    const ConnectionId connection(++connections_);
    const Peers::Stream stream{.node = NodeName(node), .connection = connection};
    const Peers::Judgement judgement = peers_.hello(hello, connection, "here", now_, view());
    if (judgement.replaced) {
      see(Disconnected{.node = stream.node, .connection = judgement.replaced->stream.connection});
      connected_.erase(node);
    }
    if (judgement.refusal) return is_sentence(*judgement.refusal);
    const Answer answer = accept(judgement.input, judgement.then);
    const Peers::Admission admission = peers_.registered(stream, answer.refusal, view());
    require(admission.refusal.has_value() != admission.welcome.has_value(),
            "a stream that was judged is welcomed or refused");
    if (admission.refusal) {
      peers_.gone(stream);
      return is_sentence(*admission.refusal);
    }
    connected_[node] = {connection, judgement.input.instance};
    (void)peers_.orders(stream.node, view(), true);
  }
  static void is_sentence(const Error& refusal) {
    require(is_message(refusal.message), "a refusal is a sentence", refusal.message);
  }
  // What the hub does when the rows of a message are durable.
  void release() {
    for (const Peers::Ending& ending : peers_.released(rows_, state_.ledger)) {
      see(Disconnected{.node = ending.stream.node, .connection = ending.stream.connection});
      connected_.erase(ending.stream.node.str());
    }
    for (const NodeName& node : touched_nodes(rows_, state_.ledger)) {
      const auto orders = peers_.orders(node, view(), false);
      if (!orders) continue;
      for (const Assignment& run : orders->runs)
        require(orders->running.contains({run.job, run.attempt}), "what is sent is to run");
    }
    rows_.clear();
  }
  [[nodiscard]] Peers::View view() const {
    return {.ledger = state_.ledger,
            .presence = state_.presence,
            .paused = paused_,
            .last = state_.last};
  }
  void reported(const std::string& node, const v1::Fact& fact) {
    const auto from = connected_.find(node);
    if (from == connected_.end()) return;
    accept(ReportFact{.node = NodeName(node), .instance = from->second.second, .fact = fact});
    if (fact.has_swept())
      see(SweptHeard{.node = NodeName(node),
                     .connection = from->second.first,
                     .job = JobId(fact.job_id()),
                     .attempt = AttemptNo(fact.attempt())});
  }
  void check() const {
    for (const auto& [node, holders] : state_.ledger.indexes.device_holders) {
      for (const auto& [device, key] : holders) {
        const AttemptRecord* attempt = state_.ledger.jobs.at(key.first).attempt(key.second);
        require(attempt != nullptr && attempt->part(node) != nullptr,
                "who holds a device has a part there");
      }
    }
    for (const auto& [id, job] : state_.ledger.jobs) {
      for (const AttemptRecord& attempt : job.attempts) {
        for (const NodePart& part : attempt.parts) {
          const std::set<std::uint32_t> each(part.placed.devices.begin(),
                                             part.placed.devices.end());
          require(each.size() == part.placed.devices.size(), "a part has each of its devices once");
        }
      }
      (void)explain(state_.ledger, state_.presence, job, now_, limits_);
    }
  }

  State state_;
  Now now_{.wall = WallTime(std::chrono::seconds(1'800'000'000)),
           .boot = BootTime(std::chrono::hours(1))};
  Limits limits_;
  Peers peers_{std::chrono::seconds(1)};
  std::vector<Row> rows_;  // of the running message
  std::string paused_;
  std::uint64_t connections_ = 0;
  std::map<std::string, std::pair<ConnectionId, InstanceId>> connected_;
};

// Ignores errors: a message that a connection would have refused is not checked.
class Quiet final : public google::protobuf::io::ErrorCollector {
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

void agents(std::string_view input) {
  Cluster cluster;
  Quiet quiet;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&quiet);
  parser.SetRecursionLimit(20);
  while (!input.empty()) {
    const std::size_t end = std::min(input.find("\n== "), input.size());
    std::string_view part = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    const std::size_t line = std::min(part.find('\n'), part.size());
    const std::string_view title = part.substr(0, line);
    part.remove_prefix(line);
    if (title.starts_with("== later ")) {
      std::uint32_t seconds = 0;
      std::from_chars(title.data() + 9, title.data() + title.size(), seconds);
      cluster.later(seconds);
    } else if (title == "== n0" || title == "== n1") {
      v1::ConnectRequest request;
      if (!parser.ParseFromString(std::string(part), &request)) continue;
      v1::ConnectRequest sent;  // as it arrives from a connection
      if (sent.ParseFromString(request.SerializeAsString()))
        cluster.hear(std::string(title.substr(3)), sent);
    }
  }
}

}  // namespace muster::fuzz
