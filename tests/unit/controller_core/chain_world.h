// A SmallWorld with chains. A test owns it. It runs on the test's thread.
//
// Stages are named CHAIN.STAGE; the test gives their ids, in order.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {

struct StageOf {
  std::string id, stage;
  std::vector<std::string> after = {};  // ids
};

// The dump of the ledger that the journal would give: without the other rows of archived jobs, and
// without all rows of jobs whose tombstone is dropped.
inline std::string replay_of_what_is_kept(const SmallWorld& world) {
  std::set<JobId> archived, dropped;
  for (const auto& [index, event] : world.journal) {
    if (const auto* one = std::get_if<JobArchived>(&event.body)) archived.insert(one->job);
    if (const auto* one = std::get_if<TombstoneDropped>(&event.body)) dropped.insert(one->job);
  }
  Ledger again;
  for (const auto& [index, event] : world.journal) {
    const JobId about = std::visit(
        [](const auto& body) {
          if constexpr (requires { body.job; }) return body.job;
          return JobId();
        },
        event.body);
    if (dropped.contains(about) ||
        (archived.contains(about) && !std::holds_alternative<JobArchived>(event.body)))
      continue;
    apply(again, index, event);
  }
  again.index = world.ledger.index;
  again.port_cursor = world.ledger.port_cursor;  // a hint: archived jobs take theirs along
  return dump(again);
}

struct StagesWorld : SmallWorld {
  StagesWorld() { node("n0", 4); }

  static std::vector<v1::JobSpec> specs(const std::string& chain,
                                        const std::vector<StageOf>& stages) {
    std::vector<v1::JobSpec> all;
    for (const StageOf& one : stages) {
      v1::JobSpec& made = all.emplace_back(spec(chain + "." + one.stage, 1, 1));
      made.mutable_stage()->set_chain_name(chain);
      made.mutable_stage()->set_name(one.stage);
      made.mutable_stage()->set_number(static_cast<std::uint32_t>(all.size()));
      made.mutable_stage()->set_count(static_cast<std::uint32_t>(stages.size()));
      for (const std::string& id : one.after) made.mutable_schedule()->add_after(id);
    }
    return all;
  }
  static v1::ResolvedSpec resolved(const v1::JobSpec& spec, const std::vector<StageOf>& stages) {
    v1::ResolvedSpec made = SmallWorld::resolved(spec);
    made.mutable_stage()->set_chain(stages.front().id);
    for (const StageOf& other : stages) {
      v1::StageDir& dir = *made.mutable_stage()->add_dirs();
      dir.set_stage(other.stage);
      dir.set_job(other.id);
      dir.set_out("/out/" + other.id);
    }
    return made;
  }
  // Makes a stage begin with what `stage` saved.
  static void starts(v1::JobSpec& what, const std::string& stage, v1::StartAs as) {
    what.mutable_start()->set_from("stage:" + stage);
    what.mutable_start()->set_as(as);
  }
  static SubmitJob input(const std::vector<StageOf>& stages, const std::vector<v1::JobSpec>& specs,
                         const std::string& request = "") {
    SubmitJob made{.job = JobId(stages.front().id),
                   .request_id = RequestId(request),
                   .spec = specs.front(),
                   .resolved = resolved(specs.front(), stages),
                   .spec_hash = "hash"};
    for (std::size_t at = 1; at < stages.size(); ++at)
      made.behind.push_back({.job = JobId(stages[at].id),
                             .spec = specs[at],
                             .resolved = resolved(specs[at], stages),
                             .spec_hash = "hash"});
    return made;
  }
  Decision chain(const std::string& name, const std::vector<StageOf>& stages,
                 const std::string& request = "") {
    return put(input(stages, specs(name, stages), request));
  }

  void checkpoint(const std::string& id, std::uint32_t attempt, std::int64_t step,
                  const std::string& node = "n0") {
    HeartbeatHeard heard{.node = NodeName(node), .connection = ConnectionId(1)};
    v1::AttemptReading& reading = *heard.heartbeat.add_readings();
    reading.set_job_id(id);
    reading.set_attempt(attempt);
    v1::ShardReading& shard = *reading.add_shards();
    shard.set_step(step);
    shard.set_shard("a");
    shard.set_bytes(10);
    shard.set_finished(true);
    shard.set_expected(1);
    shard.set_sealed(true);
    shard.set_path(fmt::format("/save/{}/attempt-{}/iter_{}", id, attempt, step));
    see(heard);
  }
  void succeed(const std::string& id, std::uint32_t attempt = 1) {
    started(id, attempt, "n0");
    exited(id, attempt, "n0", 0, 0);
    swept(id, attempt, "n0");
  }
  void breaks(const std::string& id, std::uint32_t attempt, int code, int signal = 0) {
    started(id, attempt, "n0");
    exited(id, attempt, "n0", 0, code, signal);
    swept(id, attempt, "n0");
  }
  [[nodiscard]] std::string reason(const std::string& id) const {
    return job(id).verdict ? job(id).verdict->reason : "";
  }
  [[nodiscard]] std::string replayed() const { return replay_of_what_is_kept(*this); }
};

}  // namespace muster::core
