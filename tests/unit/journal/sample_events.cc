#include "tests/unit/journal/sample_events.h"

#include <fmt/format.h>

#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/event_fields.h"
#include "controller/journal/codec.h"

namespace muster::journal {
namespace {

WallTime at(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds) + Duration(7)); }

v1::JobSpec spec(const std::string& name) {
  v1::JobSpec made;
  made.set_name(name);
  made.set_engine("torch");
  (*made.mutable_labels())["exp"] = "wiki";
  made.mutable_resources()->set_nodes(2);
  made.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
  made.mutable_recovery()->mutable_window()->set_seconds(86'400);
  made.set_output_dir("/srv/out");
  return made;
}
v1::StoreProfile profile() {
  v1::StoreProfile profile;
  profile.set_url("obs://data");
  profile.set_endpoint("https://obs.cn-north-4.myhuaweicloud.com");
  profile.set_region("cn-north-4");
  profile.set_user("AKID");
  profile.set_secret("pangu-key");
  return profile;
}
v1::Inventory inventory() {
  v1::Inventory made;
  made.add_devices()->set_id(3);
  made.set_address("10.0.0.7");
  made.set_cpus(64);
  return made;
}
v1::ResolvedSpec resolved_spec() {
  v1::ResolvedSpec made;
  made.add_after("0j5c2p8q3r1ab");
  (*made.mutable_inputs())["data"] = "/data/wiki";
  made.mutable_start()->mutable_point()->set_step(7);
  made.mutable_stage()->set_chain("0j5c2p8q3r1ac");
  made.add_fetches()->set_dir("/srv/strategy");
  made.set_outputs_root("/nfs/out");
  return made;
}
v1::NodeResolved resolved() {
  v1::NodeResolved made;
  made.add_env("HOME=/home/ada");
  made.add_programs("/opt/venv/bin/python3");
  made.set_run_dir("/var/lib/muster/agent/runs/06f3kq8z2m1ab.1");
  v1::InputState& input = *made.add_inputs();
  input.set_name("data");
  input.set_contents_sha256(std::string(64, 'a'));
  input.set_objects(3);
  input.set_bytes(7);
  input.set_fetched_bytes(4);
  return made;
}
core::Verdict verdict() {
  return {.cls = core::FailureClass::Operator,
          .node = NodeName("n07"),
          .rank = RankNo(5),
          .reason = "rank 5 ended with status 3",
          .evidence = "ValueError: x",
          .signature = "exit 3"};
}

core::Event event(core::EventBody body) {
  static std::int64_t seconds = 0;
  return {.at = at(++seconds % 1'000 + 1), .body = std::move(body)};
}

}  // namespace

std::vector<core::Event> one_of_every_kind() {
  const JobId job("01jabcdefghjk");
  const AttemptNo attempt(3);
  const NodeName node("n07");
  const WallTime when = at(1'700'000'000);
  const core::PlacedNode placed{.node = node,
                                .boot_id = BootId("b-1"),
                                .instance = InstanceId("i-1"),
                                .address = "10.0.0.7",
                                .devices = {0, 3},
                                .first_rank = RankNo(8),
                                .rank_count = 2,
                                .device_type = "ascend910b",
                                .interface = "bond0",
                                .device_model = "910B3",
                                .physical_ids = {4, 7},
                                .device_ips = {"192.98.92.1", "192.98.92.2"},
                                .super_device_ids = {"0", "65536"},
                                .super_pod_id = "1",
                                .server_id = "10.0.0.70",
                                .hccl_port = 60'000};
  std::vector<core::EventBody> bodies = {
      core::ControllerStarted{
          .epoch = Epoch(1ull << 40), .cluster = ClusterId("c-1"), .version = "0.1.0"},
      core::JournalEndLost{.lineage = {.generation = 1ull << 40, .id = std::string(32, 'c')},
                           .attempts_skipped = core::kAttemptReportedMax},
      core::NodeRegistered{.node = node,
                           .instance = InstanceId("i-1"),
                           .boot_id = BootId("b-1"),
                           .inventory = inventory(),
                           .version = "0.1.0"},
      core::NodeDeclaredDead{.node = node, .reason = "burnt", .by = "olga"},
      core::NodeDrained{.node = node,
                        .actor = "ann",
                        .why = "new disk",
                        .since = at(1'700'000'000),
                        .deadline = at(1'700'003'600)},
      core::NodeLabelled{.node = node, .actor = "ann", .labels = {{"rack", "r12"}}},
      core::NodeUndrained{.node = NodeName("n98"), .actor = "bob"},
      core::NodeRemoved{.node = NodeName("n99"), .actor = "owner"},
      core::NodeRenamed{.node = NodeName("n97"), .new_name = NodeName("n96"), .actor = "ann"},
      core::SecretSet{.key = {.owner = "ann", .shared = false, .name = "hf"},
                      .item = "00112233445566778899aabbccddeeff",
                      .replaced = "0123456789abcdef0123456789abcdef",
                      .actor = "ada"},
      core::SecretRemoved{.key = {.owner = {}, .shared = true, .name = "proxy"},
                          .item = "ffeeddccbbaa99887766554433221100",
                          .actor = "ada"},
      core::StoreSet{.key = {.owner = "ann", .shared = false, .name = "pangu"},
                     .profile = profile(),
                     .actor = "ada"},
      core::StoreRemoved{.key = {.owner = {}, .shared = true, .name = "mirror"}, .actor = "ada"},
      core::JobSubmitted{.job = job,
                         .request_id = RequestId("r-1"),
                         .spec = spec("llama-7b"),
                         .resolved = resolved_spec(),
                         .spec_hash = "h",
                         .owner = "alice"},
      core::CancelRequested{.job = job, .reason = "no longer needed", .by = "alice"},
      core::AttemptPlaced{
          .job = job,
          .attempt = attempt,
          .nodes = {placed, placed},
          .master_port = 65'535,
          .resume = core::ResumePoint{.attempt = AttemptNo(2),
                                      .step = 1ll << 40,
                                      .path = "/srv/out/a2/iter_5",
                                      .from_start = true,
                                      .shards = 8},
          .table_sha256 = std::string(64, 'a'),
          .saved = {{.named_dir = "/data/ckpt",
                     .job = JobId("0j5c2p8q3r1ab"),
                     .path = "/srv/other/a4/iter_8",
                     .step = 8}},
          .secrets = {{.name = "hf", .item = "0123456789abcdef0123456789abcdef"}},
          .inputs = {{.input = "data",
                      .profile = profile(),
                      .secret = "store 'pangu' of user 'ann'"}},
          .output =
              core::PinnedOutput{.profile = profile(), .secret = "store 'pangu' of user 'ann'"},
          .logs_output = core::PinnedOutput{.profile = profile(), .secret = "shared store 'logs'"}},
      core::NodeStarted{.job = job,
                        .attempt = attempt,
                        .node = node,
                        .pids = {1ull << 33, 7},
                        .worker_pid = 6,
                        .node_time = when,
                        .resolved = resolved(),
                        .controller_time = when + Duration(4),
                        .instance = InstanceId("i-1")},
      core::NodeStartFailed{.job = job,
                            .attempt = attempt,
                            .node = node,
                            .why = core::StartFailure::Checkpoint,
                            .text = "its checkpoint is torn",
                            .node_time = when,
                            .step = "checkpoints",
                            .torn = {"mp_rank_00", "mp_rank_03"},
                            .there = 7,
                            .needed = 8,
                            .names_sha256 = std::string(64, 'b'),
                            .controller_time = when + Duration(5),
                            .instance = InstanceId("i-1")},
      core::RankExited{.job = job,
                       .attempt = attempt,
                       .node = node,
                       .rank = RankNo(9),
                       .code = -1,
                       .signal = 9,
                       .stop_requested = true,
                       .oom = true,
                       .lost = true,
                       .success_seen = true,
                       .success_unknown = true,
                       .evidence = "Killed",
                       .node_time = when,
                       .evidence_kind = core::EvidenceKind::Consequence,
                       .step = 999,
                       .total = 1ll << 40,
                       .killed_unasked = true,
                       .controller_time = when + Duration(2),
                       .training_rank = 75,
                       .instance = InstanceId("i-1")},
      core::AuxiliaryExited{.job = job,
                            .attempt = attempt,
                            .node = node,
                            .name = "scheduler",
                            .code = -1,
                            .signal = 11,
                            .evidence = "Segmentation fault",
                            .node_time = when,
                            .controller_time = when + Duration(3),
                            .instance = InstanceId("i-1")},
      core::PredecessorSucceeded{
          .job = job,
          .predecessor = JobId("0j5c2p8q3r1ab"),
          .checkpoint = core::ResumePoint{.attempt = AttemptNo(4),
                                          .step = 1ll << 33,
                                          .path = "/srv/other/a4/iter_8",
                                          .from_start = true,
                                          .shards = 16},
          .owned =
              core::OwnedShards{.attempt = AttemptNo(4),
                                .holders = {{.node = node, .first_rank = RankNo(8), .ranks = 8}}}},
      core::NodeSwept{.job = job,
                      .attempt = attempt,
                      .node = node,
                      .why = core::SweptWhy::Stopped,
                      .node_time = when,
                      .logs_follow = true,
                      .controller_time = when + Duration(6),
                      .instance = InstanceId("i-1")},
      core::FirstStep{.job = job,
                      .attempt = attempt,
                      .node = node,
                      .step = 500,
                      .node_time = when,
                      .controller_time = when + Duration(7),
                      .instance = InstanceId("i-1")},
      core::NodeClockSkewed{.job = job,
                            .attempt = attempt,
                            .node = node,
                            .ahead = std::chrono::seconds(-75),
                            .node_time = when,
                            .controller_time = when + Duration(9),
                            .instance = InstanceId("i-1")},
      core::OutputsUploaded{.job = job,
                            .attempt = attempt,
                            .node = node,
                            .files = 3,
                            .bytes = 1ull << 33,
                            .problem = "out/a was written while it was uploaded",
                            .step = 1ll << 33,
                            .seal = true,
                            .sums_sha256 = std::string(64, 'b'),
                            .removed = {{.attempt = AttemptNo(1), .step = 1ll << 34}},
                            .not_removed = "attempt 1, step 2: 403",
                            .logs = true,
                            .node_time = when,
                            .controller_time = when + Duration(9),
                            .instance = InstanceId("i-1")},
      core::ScriptLaunched{.job = job,
                           .attempt = attempt,
                           .node = node,
                           .first_rank = 72,
                           .ranks = 8,
                           .save = "/data/ckpt",
                           .weights_alone = true,
                           .node_time = when,
                           .controller_time = when + Duration(8),
                           .instance = InstanceId("i-1")},
      core::CheckpointCompleted{.job = job,
                                .attempt = attempt,
                                .step = 1'000,
                                .path = "/srv/out/a3/iter_1000",
                                .bytes = 1ull << 41,
                                .shards = 16},
      core::CheckpointQuarantined{.job = job,
                                  .attempt = attempt,
                                  .step = 1'000,
                                  .reason = "attempts 4 and 5 failed the same way"},
      core::AttemptBroke{.job = job,
                         .attempt = attempt,
                         .cause = "rank 9 was killed",
                         .fault_time = when,
                         .detected_at = when + Duration(1),
                         .drained = node,
                         .differing_input = "data"},
      core::AttemptEnded{.job = job,
                         .attempt = attempt,
                         .verdict = verdict(),
                         .charged = true,
                         .best_step = 999,
                         .fence = "swept",
                         .job_ends = true},
      core::CaughtUp{.job = job, .attempt = attempt, .step = 999},
      core::AttemptNoted{.job = job,
                         .attempt = attempt,
                         .note = core::Note::UnknownFiles,
                         .node = node,
                         .step = 12,
                         .text = "step_20.pt"},
      core::AttemptCompleted{.job = job, .attempt = attempt, .best_step = 2'000},
      core::JobEnded{.job = job, .outcome = core::Outcome::Cancelled, .verdict = verdict()},
      core::LogsCollected{.job = job, .attempt = attempt, .node = node},
      core::JobArchived{.job = job,
                        .name = "llama-7b.train",
                        .request_id = RequestId("r-1"),
                        .outcome = core::Outcome::Failed,
                        .ended_at = when,
                        .chain = JobId("01jabcdefghj0"),
                        .chain_name = "llama-7b",
                        .saved = {{.named_dir = "/data/ckpt",
                                   .job = job,
                                   .path = "/srv/out/a3/iter_1000",
                                   .step = 1'000}},
                        .owner = "alice"},
      core::TombstoneDropped{.job = job},
      core::TokenCreated{.token = "1f2e3d4c5b",
                         .secret_sha256 = std::string(64, 'a'),
                         .nodes = "gpu-*",
                         .uses = 16,
                         .ends_at = when,
                         .may_replace = true,
                         .actor = "owner",
                         .user = "ann"},
      core::TokenRevoked{.token = "1f2e3d4c5b", .actor = "owner"},
      core::CertificateIssued{.serial = "0a1b",
                              .subject = {.role = core::SubjectRole::User, .name = "ann"},
                              .key = std::string(64, 'b'),
                              .not_before = when,
                              .not_after = when,
                              .token = "1f2e3d4c5b",
                              .actor = "token 1f2e3d4c5b"},
      core::CertificateRevoked{.subject = {.role = core::SubjectRole::User, .name = "ann"},
                               .key = std::string(64, 'b'),
                               .serial = "0a1b",
                               .before = when,
                               .why = "the laptop is lost",
                               .actor = "owner"},
      core::AuthorityChanged{.step = core::AuthorityStep::Signs,
                             .sha256 = std::string(64, 'c'),
                             .imported = true,
                             .actor = "owner"},
  };
  std::vector<core::Event> events;
  std::int64_t seconds = 1'700'000'000;
  for (auto& body : bodies) events.push_back({.at = at(++seconds), .body = std::move(body)});
  return events;
}

core::Event started(std::uint64_t epoch) {
  return event(core::ControllerStarted{
      .epoch = Epoch(epoch), .cluster = ClusterId("c-1"), .version = "0.1.0"});
}
core::Event end_lost(std::uint64_t generation) {
  return event(core::JournalEndLost{
      .lineage = {.generation = generation, .id = fmt::format("id-{}", generation)},
      .attempts_skipped = 3});
}
core::Event registered(const std::string& node, const std::string& boot) {
  return event(core::NodeRegistered{.node = NodeName(node),
                                    .instance = InstanceId("i-" + node),
                                    .boot_id = BootId(boot),
                                    .inventory = inventory(),
                                    .version = "0.1.0"});
}
core::Event submitted(const std::string& job, const std::string& name) {
  return event(core::JobSubmitted{.job = JobId(job),
                                  .request_id = RequestId("r-" + job),
                                  .spec = spec(name),
                                  .spec_hash = "h"});
}
core::Event exited(const std::string& job, std::uint32_t rank, std::int32_t code) {
  return event(core::RankExited{.job = JobId(job),
                                .attempt = AttemptNo(1),
                                .node = NodeName("n01"),
                                .rank = RankNo(rank),
                                .code = code,
                                .evidence = "a line of the log"});
}
core::Event ended(const std::string& job) {
  return event(
      core::JobEnded{.job = JobId(job), .outcome = core::Outcome::Succeeded, .verdict = {}});
}
core::Event archived(const std::string& job, const std::string& name) {
  return event(core::JobArchived{.job = JobId(job),
                                 .name = name,
                                 .request_id = RequestId("r-" + job),
                                 .outcome = core::Outcome::Succeeded,
                                 .ended_at = at(5)});
}
core::Event tombstone_dropped(const std::string& job) {
  return event(core::TombstoneDropped{.job = JobId(job)});
}

std::string text_of(const Row& row) {
  const Record record = encode(row.event);
  const JobId* job = core::job_of(row.event.body);
  std::string hex;
  for (const char byte : record.payload)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return fmt::format("{} {} {} {}", row.index.value, kind_name(record.type),
                     job == nullptr ? "-" : job->value, hex);
}

}  // namespace muster::journal
