#include "tests/scenarios/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "common/proto/proto_time.h"
#include "tests/scenarios/describe.h"

namespace muster::scenarios {
namespace {

Duration duration_of(const std::string& text) {
  std::size_t used = 0;
  const double number = std::stod(text, &used);
  const std::string unit = text.substr(used);
  double seconds = 0;
  if (unit == "ms")
    seconds = number / 1000;
  else if (unit == "s")
    seconds = number;
  else if (unit == "m")
    seconds = number * 60;
  else if (unit == "h")
    seconds = number * 3600;
  else
    throw std::runtime_error("not a duration (ms, s, m, h): " + text);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

void set(google::protobuf::Duration& to, const std::string& text) {
  to.set_seconds(std::chrono::duration_cast<std::chrono::seconds>(duration_of(text)).count());
}

std::uint32_t number_of(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text));
}

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

const core::JobRecord& job_named(const World& world, const std::string& name) {
  const auto id = world.jobs.find(name);
  const auto job =
      id == world.jobs.end() ? world.ledger().jobs.end() : world.ledger().jobs.find(id->second);
  if (job == world.ledger().jobs.end()) throw std::runtime_error("no such job: " + name);
  return job->second;
}

const core::AttemptRecord& attempt_named(const World& world, const Command& command) {
  const core::JobRecord& job = job_named(world, command.word(0));
  const core::AttemptRecord* attempt =
      command.has("attempt") ? job.attempt(AttemptNo(number_of(command.option("attempt"))))
                             : job.current();
  if (attempt == nullptr) throw std::runtime_error("no such attempt: " + command.text);
  return *attempt;
}

v1::JobSpec spec_of(const Command& command) {
  v1::JobSpec spec;
  spec.set_name(command.word(0));
  spec.set_engine(command.option("engine", "torch"));
  auto& resources = *spec.mutable_resources();
  resources.set_nodes(number_of(command.option("nodes", "1")));
  resources.set_devices(number_of(command.option("devices", "1")));
  resources.set_type(command.option("type", "auto"));
  for (const std::string& id : list_of(command.option("device_ids")))
    resources.add_device_ids(number_of(id));
  for (const std::string& host : list_of(command.option("hosts"))) resources.add_hosts(host);
  for (const std::string& label : list_of(command.option("select")))
    (*resources.mutable_select())[label.substr(0, label.find(':'))] =
        label.substr(label.find(':') + 1);
  for (const std::string& secret : list_of(command.option("secrets")))
    (*spec.mutable_runtime()->mutable_env())[secret.substr(0, secret.find(':'))] =
        "${secret:" + secret.substr(secret.find(':') + 1) + "}";
  spec.mutable_launch()->set_per(command.option("per", "rank") == "once" ? v1::LAUNCH_PER_ONCE
                                                                         : v1::LAUNCH_PER_RANK);
  spec.mutable_launch()->set_lockstep(command.option("lockstep", "yes") == "yes");
  spec.mutable_network()->set_master_port(number_of(command.option("port", "0")));
  spec.mutable_checkpoint()->set_layout(command.option("layout", "megatron"));
  if (const std::string storage = command.option("storage"); !storage.empty())
    spec.mutable_checkpoint()->set_storage(storage == "shared" ? v1::CHECKPOINT_STORAGE_SHARED
                                                               : v1::CHECKPOINT_STORAGE_LOCAL);
  spec.mutable_outputs()->set_to(command.option("outputs"));
  spec.mutable_outputs()->set_logs_to(command.option("logs_to"));
  spec.mutable_resume()->set_enabled(command.option("resume", "yes") == "yes");
  auto& recovery = *spec.mutable_recovery();
  recovery.set_max_restarts(number_of(command.option("max_restarts", "20")));
  set(*recovery.mutable_window(), command.option("window", "24h"));
  if (command.has("backoff")) set(*recovery.mutable_backoff(), command.option("backoff"));
  set(*recovery.mutable_orphan_grace(), command.option("orphan_grace", "30m"));
  set(*recovery.mutable_stop_grace(), command.option("stop_grace", "5s"));
  if (const std::string success = command.option("success"); success.starts_with("regex:")) {
    spec.mutable_success()->set_regex(success.substr(6));
  } else if (success.starts_with("file:")) {
    spec.mutable_success()->set_file(success.substr(5));
  } else if (success == "last-step") {
    spec.mutable_success()->set_last_step(true);
  } else {
    spec.mutable_success()->set_exit0(true);
  }
  return spec;
}

v1::Fact fact_of(const World& world, const core::JobRecord& job, const core::AttemptRecord& attempt,
                 Duration offset = {}) {
  v1::Fact fact;
  fact.set_job_id(job.id.str());
  fact.set_attempt(attempt.number.value);
  *fact.mutable_at() = to_proto(world.now().wall + offset);
  *fact.mutable_age() = to_proto(std::max(-offset, Duration::zero()));
  return fact;
}

void report(World& world, const std::string& node, v1::Fact fact) {
  world.put(core::ReportFact{.node = NodeName(node),
                             .instance = InstanceId(world.agents.at(node).instance),
                             .fact = std::move(fact)});
}

std::string node_of_rank(const core::AttemptRecord& attempt, std::uint32_t rank) {
  for (const core::NodePart& part : attempt.parts) {
    if (rank >= part.placed.first_rank.value &&
        rank < part.placed.first_rank.value + part.placed.rank_count)
      return part.placed.node.str();
  }
  throw std::runtime_error("no such rank");
}

// --- the verbs -----------------------------------------------------------------------------------

void limits(World& world, const Command& command) {
  core::Limits& limits = world.limits;
  if (command.has("silent_after"))
    limits.silent_after = duration_of(command.option("silent_after"));
  if (command.has("start_timeout"))
    limits.start_timeout = duration_of(command.option("start_timeout"));
  if (command.has("taken_ports_max"))
    limits.taken_ports_max = number_of(command.option("taken_ports_max"));
  if (command.has("start_pause")) limits.start_pause = duration_of(command.option("start_pause"));
  if (command.has("archive_after"))
    limits.archive_after = duration_of(command.option("archive_after"));
  if (command.has("tombstones_max"))
    limits.tombstones_max = number_of(command.option("tombstones_max"));
  if (command.has("tombstone_keep"))
    limits.tombstone_keep = duration_of(command.option("tombstone_keep"));
  if (command.has("queued_jobs_max"))
    limits.queued_jobs_max = number_of(command.option("queued_jobs_max"));
  if (command.has("port_first"))
    limits.port_first = static_cast<std::uint16_t>(number_of(command.option("port_first")));
  if (command.has("port_last"))
    limits.port_last = static_cast<std::uint16_t>(number_of(command.option("port_last")));
  if (command.has("outputs_root"))
    limits.outputs_root = limits.cluster_out = command.option("outputs_root");
}

void node(World& world, const Command& command) {
  const std::string name = command.word(0);
  Agent& agent = world.agents[name];
  agent.boot = command.option("boot", "b1");
  agent.instance = command.option("instance", name + "-i1");
  agent.inventory.Clear();
  agent.inventory.set_address(command.option("address", name));
  v1::NetworkInterface& network = *agent.inventory.add_interfaces();
  network.set_name("eth0");
  network.add_addresses(agent.inventory.address());
  for (std::uint32_t id = 0; id < number_of(command.option("devices", "2")); ++id) {
    v1::Device& device = *agent.inventory.add_devices();
    device.set_id(id);
    device.set_type(command.option("type", "cpu"));
    if (command.has("net")) device.add_addresses(fmt::format("{}.{}", command.option("net"), id));
    if (!command.has("pod")) continue;
    device.set_super_pod_id(command.option("pod"));
    device.set_super_device_id(
        fmt::format("{}", number_of(command.option("server", "0")) * 16 + id));
  }
  agent.inventory.set_knows_secrets(command.option("secrets", "yes") == "yes");
  agent.inventory.set_uploads(command.option("uploads", "yes") == "yes");
  agent.inventory.set_uploads_logs(command.option("uploads_logs", "yes") == "yes");
  agent.inventory.set_rclone("1.60.1");
  for (const std::string& label : list_of(command.option("label")))
    (*agent.inventory.mutable_labels())[label.substr(0, label.find(':'))] =
        label.substr(label.find(':') + 1);
  world.hello(name);
}

// Another agent that claims a name.
void intruder(World& world, const Command& command) {
  world.put(core::RegisterNode{.node = NodeName(command.word(0)),
                               .instance = InstanceId(command.option("instance")),
                               .boot_id = BootId(command.option("boot", "b1"))});
}

// start=J names that job's newest whole checkpoint, as a client that submits would find it.
// start=DIR start_step= names a checkpoint that no job wrote.
void set_start(const World& world, const Command& command, v1::JobSpec& spec,
               v1::ResolvedSpec& resolved) {
  const std::string from = command.option("start");
  if (from.empty()) return;
  v1::StartSpec& start = *spec.mutable_start();
  const std::string as = command.option("as", "weights");
  start.set_as(as == "resume"              ? v1::START_AS_RESUME
               : as == "resume-or-scratch" ? v1::START_AS_RESUME_OR_SCRATCH
                                           : v1::START_AS_WEIGHTS);
  if (from.starts_with("stage:")) {
    start.set_from(from);
    if (command.has("start_step")) start.set_step(std::stol(command.option("start_step")));
    return;
  }
  if (from.starts_with("/")) {
    start.set_from(from);
    v1::StartPoint& point = *resolved.mutable_start()->mutable_point();
    point.set_step(std::stol(command.option("start_step")));
    point.set_path(from + "/iter_" + command.option("start_step"));
    return;
  }
  start.set_from("job:" + from);
  for (const core::CheckpointRecord& known : job_named(world, from).checkpoints) {
    if (known.quarantined || known.step < resolved.start().point().step()) continue;
    v1::StartPoint& point = *resolved.mutable_start()->mutable_point();
    point.set_attempt(known.attempt.value);
    point.set_step(known.step);
    point.set_path(known.path);
  }
}

void stage(World& world, const Command& command) {
  core::ChainedJob& added = world.stages.emplace_back(
      core::ChainedJob{.job = {}, .spec = spec_of(command), .resolved = {}, .spec_hash = "hash"});
  set_start(world, command, added.spec, added.resolved);
  for (const std::string& name : list_of(command.option("after"))) added.resolved.add_after(name);
}

// Submits the stages that were given before, in order, as a chain: "stage:S" becomes the id of that
// stage.
void submit_chain(World& world, const Command& command) {
  std::vector<core::ChainedJob> stages = std::exchange(world.stages, {});
  core::SubmitJob input{.request_id = RequestId(command.option("request"))};
  std::map<std::string, std::string> ids;
  // j1, j1b, j1c: the ids increase.
  const std::string first = fmt::format("j{}", world.next_job);
  for (std::size_t at = 0; at < stages.size(); ++at)
    ids[stages[at].spec.name()] =
        at == 0 ? first : fmt::format("{}{}", first, static_cast<char>('a' + at));
  for (std::size_t at = 0; at < stages.size(); ++at) {
    core::ChainedJob& one = stages[at];
    v1::JobSpec& spec = one.spec;
    v1::StageSpec& of = *spec.mutable_stage();
    one.resolved.mutable_stage()->set_chain(first);
    of.set_chain_name(command.word(0));
    of.set_name(spec.name());
    of.set_number(static_cast<std::uint32_t>(at + 1));
    of.set_count(static_cast<std::uint32_t>(stages.size()));
    for (const auto& [other, id] : ids) {
      v1::StageDir& dir = *one.resolved.mutable_stage()->add_dirs();
      dir.set_stage(other);
      dir.set_job(id);
    }
    one.job = JobId(ids.at(spec.name()));
    spec.set_name(command.word(0) + "." + spec.name());
    for (std::string& name : *one.resolved.mutable_after()) {
      if (name.starts_with("stage:")) {
        name = ids.at(name.substr(6));
      } else if (world.jobs.contains(name)) {
        name = world.jobs.at(name).str();
      }
    }
    if (at == 0) {
      input.job = one.job;
      input.spec = std::move(one.spec);
      input.resolved = std::move(one.resolved);
    } else {
      input.behind.push_back(std::move(one));
    }
  }
  const core::Answer answer = world.put(input);
  if (answer.repeated)
    world.say(fmt::format("  the same request as before: {}", answer.job->str()));
  if (!answer.job || answer.repeated) return;
  for (const auto& [name, id] : ids) world.jobs[command.word(0) + "." + name] = JobId(id);
  ++world.next_job;
}

void submit(World& world, const Command& command) {
  const JobId id(command.option("id", fmt::format("j{}", world.next_job)));
  core::SubmitJob input{.job = id,
                        .request_id = RequestId(command.option("request")),
                        .spec = spec_of(command),
                        .resolved = {},
                        .spec_hash = "hash"};
  for (const std::string& name : list_of(command.option("after"))) {
    const auto known = world.jobs.find(name);
    input.resolved.add_after(known == world.jobs.end() ? name : known->second.str());
  }
  set_start(world, command, input.spec, input.resolved);
  const core::Answer answer = world.put(input);
  if (answer.repeated)
    world.say(fmt::format("  the same request as before: {}", answer.job->str()));
  if (!answer.job || answer.repeated) return;
  world.jobs[command.word(0)] = *answer.job;
  ++world.next_job;
}

void cancel(World& world, const Command& command) {
  const auto known = world.jobs.find(command.word(0));
  // The name of a chain means the whole chain.
  const auto chain = world.ledger().indexes.chain_names.find(command.word(0));
  const bool whole = known == world.jobs.end() && chain != world.ledger().indexes.chain_names.end();
  world.put(core::CancelJob{.job = whole                       ? chain->second
                                   : known == world.jobs.end() ? JobId(command.word(0))
                                                               : known->second,
                            .reason = command.option("reason"),
                            .whole_chain = whole});
}

void started(World& world, const Command& command) {
  const core::AttemptRecord attempt = attempt_named(world, command);
  for (const core::NodePart& part : attempt.parts) {
    if (part.idle() || (command.words.size() > 1 && !command.has_word(part.placed.node.str())))
      continue;
    v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt);
    fact.mutable_started()->set_worker_pid(100);
    report(world, part.placed.node.str(), std::move(fact));
  }
}

void start_failed(World& world, const Command& command) {
  v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt_named(world, command));
  const std::string why = command.option("why", "launch");
  fact.mutable_start_failed()->set_why(why == "gone"         ? v1::START_FAILURE_GONE
                                       : why == "port"       ? v1::START_FAILURE_PORT
                                       : why == "disk"       ? v1::START_FAILURE_DISK
                                       : why == "node"       ? v1::START_FAILURE_NODE
                                       : why == "checkpoint" ? v1::START_FAILURE_CHECKPOINT
                                       : why == "inputs"     ? v1::START_FAILURE_INPUTS
                                       // from an agent that knows more kinds
                                       : why == "newer" ? static_cast<v1::StartFailure>(99)
                                                        : v1::START_FAILURE_LAUNCH);
  fact.mutable_start_failed()->set_text(command.option("text"));
  fact.mutable_start_failed()->set_step(command.option("step"));
  if (why == "checkpoint") {
    v1::CheckpointReading& checkpoint = *fact.mutable_start_failed()->mutable_checkpoint();
    for (const std::string& name : list_of(command.option("torn"))) checkpoint.add_torn(name);
    checkpoint.set_there(number_of(command.option("there", "0")));
    checkpoint.set_needed(number_of(command.option("needed", "0")));
    checkpoint.set_names_sha256(command.option("names"));
    for (const std::string& one : list_of(command.option("found"))) {
      v1::FoundStep& found = *checkpoint.add_found();
      found.set_attempt(number_of(one.substr(0, one.find(':'))));
      found.set_step(std::stol(one.substr(one.find(':') + 1)));
      found.set_shards(1);
      found.set_bytes(10);
    }
  }
  report(world, command.word(1), std::move(fact));
}

void exited(World& world, const Command& command) {
  const core::AttemptRecord attempt = attempt_named(world, command);
  v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt,
                          duration_of(command.option("at", "0s")));
  v1::RankExited& exit = *fact.mutable_exited();
  exit.set_rank(number_of(command.option("rank", "0")));
  exit.set_signal(static_cast<std::int32_t>(number_of(command.option("signal", "0"))));
  exit.set_code(exit.signal() != 0 || command.has_word("lost")
                    ? -1
                    : static_cast<std::int32_t>(number_of(command.option("code", "0"))));
  exit.set_stop_requested(command.has_word("stopped"));
  exit.set_oom(command.has_word("oom"));
  exit.set_lost(command.has_word("lost"));
  exit.set_success_seen(command.has_word("success"));
  exit.set_success_unknown(command.has_word("unknown"));
  if (command.has("step")) exit.set_step(std::stol(command.option("step")));
  if (command.has("total")) exit.set_total(std::stol(command.option("total")));
  exit.set_evidence(command.option("evidence"));
  if (command.has_word("cause")) exit.set_evidence_kind(v1::EVIDENCE_KIND_CAUSE);
  if (command.has_word("consequence")) exit.set_evidence_kind(v1::EVIDENCE_KIND_CONSEQUENCE);
  report(world, node_of_rank(attempt, exit.rank()), std::move(fact));
}

// An auxiliary process of the attempt ended badly.
void auxiliary(World& world, const Command& command) {
  v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt_named(world, command),
                          duration_of(command.option("at", "0s")));
  v1::AuxiliaryExited& exit = *fact.mutable_auxiliary_exited();
  exit.set_name(command.option("name", "scheduler"));
  exit.set_signal(static_cast<std::int32_t>(number_of(command.option("signal", "0"))));
  exit.set_code(
      exit.signal() != 0 ? -1 : static_cast<std::int32_t>(number_of(command.option("code", "0"))));
  exit.set_evidence(command.option("evidence"));
  report(world, command.word(1), std::move(fact));
}

void done(World& world, const Command& command) {
  const core::AttemptRecord attempt = attempt_named(world, command);
  for (std::uint32_t rank = 0; rank < attempt.world_size(); ++rank) {
    v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt);
    fact.mutable_exited()->set_rank(rank);
    if (command.has("step")) fact.mutable_exited()->set_step(std::stol(command.option("step")));
    if (command.has("total")) fact.mutable_exited()->set_total(std::stol(command.option("total")));
    report(world, node_of_rank(attempt, rank), std::move(fact));
  }
}

// "never started" -> SWEPT_WHY_NEVER_STARTED
v1::SweptWhy swept_why(const std::string& words) {
  std::string name = "SWEPT_WHY_";
  for (const char c : words)
    name += c == ' ' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  v1::SweptWhy why{};
  if (!v1::SweptWhy_Parse(name, &why)) throw std::runtime_error("no reason of a sweep: " + words);
  return why;
}

// What agents do with a stop: the ranks that still live end by SIGTERM; the agents find the other
// processes; nothing is left.
void swept(World& world, const Command& command) {
  const core::AttemptRecord attempt = attempt_named(world, command);
  for (const core::NodePart& part : attempt.parts) {
    const std::string node = part.placed.node.str();
    const bool named = command.words.size() > 1;
    if (part.swept || part.idle() ||
        (named ? !command.has_word(node) : !world.agents.at(node).heartbeats))
      continue;
    const bool well = part.exits.size() == part.placed.rank_count;
    const std::string reason = command.option("reason", well ? "ended" : "stopped");
    for (std::uint32_t rank = part.placed.first_rank.value;
         reason == "stopped" && rank < part.placed.first_rank.value + part.placed.rank_count;
         ++rank) {
      if (part.exits.contains(RankNo(rank))) continue;
      v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt);
      fact.mutable_exited()->set_rank(rank);
      fact.mutable_exited()->set_code(-1);
      fact.mutable_exited()->set_signal(15);
      fact.mutable_exited()->set_stop_requested(true);
      report(world, node, std::move(fact));
    }
    v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt);
    fact.mutable_swept()->set_why(swept_why(reason));
    fact.mutable_swept()->set_logs_follow(reason == "ended" || reason == "stopped");
    report(world, node, std::move(fact));
  }
}

void clock_skewed(World& world, const Command& command) {
  v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt_named(world, command));
  *fact.mutable_node_clock_skewed()->mutable_ahead() =
      to_proto(duration_of(command.option("ahead")));
  report(world, command.word(1), std::move(fact));
}

void first_step(World& world, const Command& command) {
  const core::AttemptRecord attempt = attempt_named(world, command);
  v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt);
  fact.mutable_first_step()->set_step(std::stol(command.option("step", "1")));
  report(world,
         command.words.size() > 1 ? command.word(1) : attempt.parts.front().placed.node.str(),
         std::move(fact));
}

// A heartbeat with readings of one attempt, from its first node or the named one: how far its start
// has come, its step, or a checkpoint's shards.
void heartbeat(World& world, const Command& command) {
  const core::JobRecord& job = job_named(world, command.word(0));
  const core::AttemptRecord& attempt = attempt_named(world, command);
  const bool named = command.words.size() > 1 && world.agents.contains(command.word(1));
  const std::string node = named ? command.word(1) : attempt.parts.front().placed.node.str();
  core::HeartbeatHeard heard{.node = NodeName(node),
                             .connection = world.agents.at(node).connection};
  v1::AttemptReading& reading = *heard.heartbeat.add_readings();
  reading.set_job_id(job.id.str());
  reading.set_attempt(attempt.number.value);
  reading.set_start_step(command.option("start_step"));
  reading.set_setup_text(command.option("progress"));
  if (command.has("step")) {
    v1::RankReading& rank = *reading.add_ranks();
    rank.set_rank(attempt.part(NodeName(node))->placed.first_rank.value);
    rank.set_step(std::stol(command.option("step")));
  }
  for (const std::string& name : list_of(command.option("shards"))) {
    v1::ShardReading& shard = *reading.add_shards();
    shard.set_step(std::stol(command.option("checkpoint")));
    shard.set_shard(name);
    shard.set_bytes(10);
    shard.set_finished(!command.has_word("unfinished"));
    shard.set_expected(number_of(command.option("of", "1")));
    shard.set_sealed(command.has_word("sealed"));
    shard.set_path(
        fmt::format("/out/attempt-{}/iter_{}", attempt.number.value, command.option("checkpoint")));
  }
  world.see(heard);
}

// A heartbeat with what the node's agent has found in the directory of outputs.
void outputs(World& world, const Command& command) {
  const std::string node = command.word(0);
  core::HeartbeatHeard heard{.node = NodeName(node),
                             .connection = world.agents.at(node).connection};
  v1::OutputsReading& reading = *heard.heartbeat.mutable_host()->mutable_outputs();
  reading.set_root(world.limits.outputs_root);
  reading.set_trouble(command.option("trouble"));
  reading.set_storage_id(command.option("storage"));
  for (const std::string& one : list_of(command.option("sees", node)))
    reading.add_instances(world.agents.at(one).instance);
  world.see(heard);
}

// Without names: every node of the attempt that is heard.
void uploaded(World& world, const Command& command) {
  const core::AttemptRecord attempt = attempt_named(world, command);
  for (const core::NodePart& part : attempt.parts) {
    const std::string node = part.placed.node.str();
    const bool named = command.words.size() > 1 && world.agents.contains(command.word(1));
    const bool logs = command.has_word("logs");
    const bool uploads = logs ? part.uploads_logs : part.uploads;
    if (named ? !command.has_word(node) : !uploads || !world.agents.at(node).heartbeats) continue;
    v1::Fact fact = fact_of(world, job_named(world, command.word(0)), attempt);
    v1::OutputsUploaded& end = *fact.mutable_outputs_uploaded();
    end.set_problem(command.option("problem"));
    end.set_files(number_of(command.option("files", end.problem().empty() ? "2" : "0")));
    if (command.has("step")) end.set_step(std::stol(command.option("step")));
    end.set_seal(command.has_word("seal"));
    end.set_logs(logs);
    report(world, node, std::move(fact));
  }
}

void logs(World& world, const Command& command) {
  const core::JobRecord job = job_named(world, command.word(0));
  for (const core::AttemptRecord& attempt : job.attempts) {
    for (const core::NodePart& part : attempt.parts) {
      if (part.idle() || (command.words.size() > 1 && !command.has_word(part.placed.node.str())))
        continue;
      world.put(core::ReportLogsCollected{
          .job = job.id, .attempt = attempt.number, .node = part.placed.node});
    }
  }
}

// The node comes back with what it still has. `present` are the names of jobs for whose newest
// attempt it has a run directory; `unknown` are runs that no journal names.
void back(World& world, const Command& command) {
  Agent& agent = world.agents.at(command.word(0));
  agent.boot = command.option("boot", agent.boot);
  agent.instance = command.option("instance", agent.instance);
  agent.present.clear();
  for (const std::string& name : list_of(command.option("present"))) {
    const core::JobRecord& job = job_named(world, name);
    const NodeName node(command.word(0));
    v1::PresentAttempt present;
    present.set_job_id(job.id.str());
    for (const core::AttemptRecord& attempt : job.attempts) {
      if (attempt.part(node) != nullptr) present.set_attempt(attempt.number.value);
    }
    agent.present.push_back(present);
  }
  for (const std::string& name : list_of(command.option("unknown"))) {
    v1::PresentAttempt present;
    present.set_job_id(name.substr(0, name.find('.')));
    present.set_attempt(number_of(name.substr(name.find('.') + 1)));
    present.set_swept(command.has_word("swept"));
    agent.present.push_back(present);
  }
  world.hello(command.word(0));
}

// The node reports that nothing is left of a run that no journal names.
void unknown_swept(World& world, const Command& command) {
  const std::string& run = command.word(1);
  v1::Fact fact;
  fact.set_job_id(run.substr(0, run.find('.')));
  fact.set_attempt(number_of(run.substr(run.find('.') + 1)));
  fact.mutable_swept()->set_why(v1::SWEPT_WHY_WORKER_DIED);
  const core::SweptHeard heard{.node = NodeName(command.word(0)),
                               .connection = world.agents.at(command.word(0)).connection,
                               .job = JobId(fact.job_id()),
                               .attempt = AttemptNo(fact.attempt())};
  report(world, command.word(0), std::move(fact));
  world.see(heard);
}

void why(World& world, const Command& command) {
  for (const std::string& line :
       core::explain(world.ledger(), world.presence(), job_named(world, command.word(0)),
                     world.now(), world.limits))
    world.say("  " + line);
}

void show(World& world, const Command& command) {
  const std::string text = describe_job(world.ledger(), job_named(world, command.word(0)));
  world.say(text.substr(0, text.size() - 1));
}

void drain(World& world, const Command& command) {
  core::DrainNode input{
      .node = NodeName(command.word(0)), .actor = "owner", .why = command.option("why")};
  if (const std::string deadline = command.option("deadline"); !deadline.empty())
    input.deadline = duration_of(deadline);
  world.put(std::move(input));
}

void label(World& world, const Command& command) {
  core::LabelNode input{.node = NodeName(command.word(0)), .actor = "owner"};
  for (const std::string& one : list_of(command.option("set"))) {
    const auto at = one.find(':');
    input.set[one.substr(0, at)] = one.substr(at + 1);
  }
  input.remove = list_of(command.option("remove"));
  world.put(std::move(input));
}

core::OwnedName owned_name(const Command& command) {
  const bool shared = command.option("shared", "no") == "yes";
  return {
      .owner = shared ? "" : command.option("owner"), .shared = shared, .name = command.word(0)};
}

void set_secret(World& world, const Command& command) {
  world.put(core::SetSecret{
      .key = owned_name(command), .item = command.option("item"), .actor = "owner"});
}

void remove_secret(World& world, const Command& command) {
  world.put(core::RemoveSecret{.key = owned_name(command), .actor = "owner"});
}

void set_store(World& world, const Command& command) {
  v1::StoreProfile profile;
  profile.set_url(command.option("url"));
  profile.set_endpoint(command.option("endpoint"));
  world.put(
      core::SetStore{.key = owned_name(command), .profile = std::move(profile), .actor = "owner"});
}

struct Verb {
  const char* name;
  void (*run)(World&, const Command&);
};
constexpr Verb kVerbs[] = {
    {"limits", limits},
    {"node", node},
    {"intruder", intruder},
    {"submit", submit},
    {"cancel", cancel},
    {"started", started},
    {"start-failed", start_failed},
    {"exited", exited},
    {"auxiliary", auxiliary},
    {"done", done},
    {"swept", swept},
    {"clock-skewed", clock_skewed},
    {"first-step", first_step},
    {"heartbeat", heartbeat},
    {"outputs", outputs},
    {"uploaded", uploaded},
    {"logs", logs},
    {"stage", stage},
    {"submit-chain", submit_chain},
    {"silent", [](World& world,
                  const Command& command) { world.agents.at(command.word(0)).heartbeats = false; }},
    {"disconnect", [](World& world, const Command& command) { world.hang_up(command.word(0)); }},
    {"back", back},
    {"unknown-swept", unknown_swept},
    {"declare-dead",
     [](World& world, const Command& command) {
       world.put(core::DeclareNodeDead{.node = NodeName(command.word(0)),
                                       .reason = command.option("reason")});
     }},
    {"drain", drain},
    {"undrain",
     [](World& world, const Command& command) {
       world.put(core::UndrainNode{.node = NodeName(command.word(0)), .actor = "owner"});
     }},
    {"label", label},
    {"set-secret", set_secret},
    {"remove-secret", remove_secret},
    {"set-store", set_store},
    {"remove-node",
     [](World& world, const Command& command) {
       world.put(core::RemoveNode{.node = NodeName(command.word(0)), .actor = "owner"});
     }},
    {"rename-node",
     [](World& world, const Command& command) {
       world.put(core::RenameNode{.node = NodeName(command.word(0)),
                                  .new_name = NodeName(command.word(1)),
                                  .actor = "owner"});
     }},
    {"advance",
     [](World& world, const Command& command) { world.advance(duration_of(command.word(0))); }},
    {"restart",
     [](World& world, const Command& command) {
       world.restart(number_of(command.option("lost", "0")));
     }},
    {"batch", [](World& world, const Command&) { world.begin_batch(); }},
    {"end-batch", [](World& world, const Command&) { world.end_batch(); }},
    {"why", why},
    {"show", show},
};

}  // namespace

void run_command(World& world, const Command& command) {
  for (const Verb& verb : kVerbs) {
    if (command.verb == verb.name) return verb.run(world, command);
  }
  throw std::runtime_error("no such command: " + command.text);
}

}  // namespace muster::scenarios
