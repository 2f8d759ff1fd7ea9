// What the records of a run mean, version 1, is frozen (docs/compatibility.md). A folder of
// tests/dumps/rundir has runs whose records belong together, and facts.txt: what today's agent sees
// in them, and the facts that it reports.
//
// tests/unit/agent/frozen_files_test.cc has every kind of record with every field, but no run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/launch/launch_record.h"
#include "agent/launch/shim_dir.h"
#include "agent/run/run_view.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"
#include "tests/support/dumps.h"
#include "tests/support/env_text.h"
#include "tests/support/schema.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

const test::DumpFiles kRunDumps = {"facts.txt", "runs"};
constexpr const char* kFrozenRuns[] = {"ended", "refused", "swept"};
const BootId kFrozenBoot{"boot-1"};

v1::NodeLaunch frozen_order() {
  v1::NodeLaunch order;
  order.set_job_id(kRun.first.str());
  order.set_attempt(kRun.second.value);
  order.set_boot_id(kFrozenBoot.str());
  order.mutable_orphan_grace()->set_seconds(600);
  order.mutable_stop_grace()->set_seconds(30);
  order.set_nofile(65'536);
  (*order.mutable_env())["MASTER_PORT"] = "29500";
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    v1::RankProcess& process = *order.add_ranks();
    process.set_rank(rank);
    process.set_cwd("/");
    for (const char* word : {"/bin/sh", "-c", "train"}) process.add_argv(word);
    (*process.mutable_env())["RANK"] = std::to_string(rank);
    process.add_devices(rank);
  }
  v1::AuxiliaryProcess& auxiliary = *order.add_auxiliaries();
  auxiliary.set_name("scheduler");
  auxiliary.set_cwd("/");
  for (const char* word : {"/bin/sh", "-c", "schedule"}) auxiliary.add_argv(word);
  return order;
}
// As the agent makes it of this order.
rundir::v1::Launch frozen_launch() {
  const rundir::RunLayout layout("/var/lib/muster/agent/runs/0123456789abc.1");
  const auto made = make_launch(frozen_order(), {.run = kRun,
                                                 .node = kNode,
                                                 .boot = kFrozenBoot,
                                                 .process_tag = "c-1.0123456789abc.1.n1",
                                                 .cgroup = "/sys/fs/cgroup/muster/0123456789abc.1",
                                                 .user = {.name = "ada",
                                                          .home = "/home/ada",
                                                          .uid = 1'000,
                                                          .gid = 1'000,
                                                          .groups = {1'000, 27}},
                                                 .path = "/usr/local/bin:/usr/bin:/bin",
                                                 .layout = &layout});
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}

// Appends records whose times are seconds of this boot.
template <class Writer, class Record>
class FrozenLog {
 public:
  explicit FrozenLog(const fs::path& file) : writer_(Writer::open(file)) { EXPECT_TRUE(writer_); }
  void add(std::int64_t second, const std::function<void(Record&)>& fill) {
    Record record;
    record.set_wall_ns((1'800'000'000 + second) * 1'000'000'000);
    record.set_boot_ns(second * 1'000'000'000);
    record.set_boot_id(kFrozenBoot.str());
    fill(record);
    EXPECT_TRUE(writer_->append(record));
  }

 private:
  Result<Writer> writer_;
};
using FrozenEvents = FrozenLog<rundir::EventWriter, rundir::v1::Event>;
using FrozenMarks = FrozenLog<rundir::MarkWriter, rundir::v1::Mark>;

rundir::RunLayout begin_run(const fs::path& root, std::uint64_t worker) {
  const rundir::RunLayout run(root);
  EXPECT_TRUE(rundir::make_run(run));
  fs::remove(run.wake_fifo());
  rundir::v1::Claim claim;
  claim.set_boot_id(kFrozenBoot.str());
  if (worker > 0) {
    claim.set_pid(worker);
    claim.set_start_time(777);
    EXPECT_TRUE(rundir::write_launch(run, frozen_launch()));
    EXPECT_TRUE(rundir::write_lease(run, BootTime(std::chrono::seconds(700)), kFrozenBoot));
  }
  EXPECT_TRUE(rundir::write_claim(run, claim));
  return run;
}
void start_ranks(FrozenEvents& events) {
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    events.add(2, [rank](rundir::v1::Event& to) {
      to.mutable_rank_started()->set_rank(rank);
      to.mutable_rank_started()->set_pid(4'300 + rank);
      to.mutable_rank_started()->set_start_time(800 + rank);
    });
  events.add(3, [](rundir::v1::Event& to) { to.mutable_started(); });
}

// Rank 1 fails, and the worker ends the others.
void write_ended(const fs::path& root) {
  using rundir::v1::Event, rundir::v1::Mark;
  const rundir::RunLayout run = begin_run(root, 4'242);
  FrozenEvents events(run.events());
  events.add(1, [](Event& to) {
    to.mutable_auxiliary_started()->set_name("scheduler");
    to.mutable_auxiliary_started()->set_pid(4'299);
    to.mutable_auxiliary_started()->set_start_time(799);
  });
  start_ranks(events);
  events.add(90, [](Event& to) {
    to.mutable_exited()->set_rank(1);
    to.mutable_exited()->set_code(3);
  });
  events.add(91, [](Event& to) {
    to.mutable_stop_requested()->set_why(rundir::v1::StopRequested::WHY_RANK_FAILED);
  });
  events.add(92, [](Event& to) {
    to.mutable_exited()->set_rank(0);
    to.mutable_exited()->set_code(-1);
    to.mutable_exited()->set_signal(15);
    to.mutable_exited()->set_stop_requested(true);
  });
  events.add(93, [](Event& to) {
    to.mutable_auxiliary_exited()->set_name("scheduler");
    to.mutable_auxiliary_exited()->set_code(-1);
    to.mutable_auxiliary_exited()->set_signal(15);
    to.mutable_auxiliary_exited()->set_stop_requested(true);
  });
  events.add(94, [](Event& to) { to.mutable_swept(); });
  FrozenMarks marks(run.mark());
  marks.add(30, [](Mark& to) { to.mutable_first_step()->set_step(1); });
  marks.add(40, [](Mark& to) { to.mutable_clock_skewed()->set_ahead_ns(90'000'000'000); });
  marks.add(91, [](Mark& to) {
    to.mutable_evidence()->set_rank(1);
    to.mutable_evidence()->set_line("ValueError: loss");
    to.mutable_evidence()->set_kind(v1::EVIDENCE_KIND_CAUSE);
    to.mutable_evidence()->set_step(70);
    to.mutable_evidence()->set_total(100);
  });
}
// The agent's claim, so that no worker starts.
void write_refused(const fs::path& root) {
  const rundir::RunLayout run = begin_run(root, 0);
  v1::CheckpointReading reading;
  reading.add_torn("rank_1.safetensors");
  reading.set_there(1);
  reading.set_needed(2);
  FrozenMarks marks(run.mark());
  marks.add(5, [&reading](rundir::v1::Mark& to) {
    to.mutable_refused()->set_why(v1::START_FAILURE_CHECKPOINT);
    to.mutable_refused()->set_text("the checkpoint is torn");
    to.mutable_refused()->set_checkpoint(reading.SerializeAsString());
  });
  marks.add(5,
            [](rundir::v1::Mark& to) { to.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED); });
}
// The worker died, and rank 1 with it; rank 0 had ended well.
void write_swept(const fs::path& root) {
  const rundir::RunLayout run = begin_run(root, 4'242);
  FrozenEvents events(run.events());
  start_ranks(events);
  events.add(60, [](rundir::v1::Event& to) { to.mutable_exited()->set_rank(0); });
  FrozenMarks marks(run.mark());
  marks.add(61, [](rundir::v1::Mark& to) { to.mutable_success_seen()->set_rank(0); });
  marks.add(70,
            [](rundir::v1::Mark& to) { to.mutable_swept()->set_why(v1::SWEPT_WHY_WORKER_DIED); });
}

std::string facts_text(const fs::path& root, test::Schema& schema) {
  std::string text;
  for (const char* name : kFrozenRuns) {
    RunView view(rundir::RunLayout(root / name), BootId("boot-2"));
    EXPECT_TRUE(view.refresh());
    EXPECT_FALSE(view.events_damaged() || view.marks_damaged());
    const RunSeen& seen = view.seen();
    text += fmt::format("# {}\nworker {} {} spoke {} started {} stop {} swept {}\n", name,
                        static_cast<int>(seen.worker), seen.worker_pid, seen.worker_spoke,
                        seen.started, seen.stop_requested, seen.swept);
    for (const v1::Fact& fact : facts_of(kRun, seen)) {
      v1::Fact shown = fact;
      // It is where the copy lies.
      if (!shown.started().resolved().run_dir().empty())
        shown.mutable_started()->mutable_resolved()->set_run_dir("RUN");
      text += "- fact\n" + schema.text("muster.v1.Fact", shown.SerializeAsString());
    }
  }
  return text;
}

// Also that the agent still writes launch records of which an older worker understands as much.
TEST(FrozenRuns, MeanWhatTheyMeantAndAreLaunchedAsTheyWere) {
  test::Schema schema;
  const auto launch_text = [&schema](rundir::v1::Launch launch) {
    v1::NodeLaunch order;
    EXPECT_TRUE(order.ParseFromString(launch.order()));
    launch.clear_order();
    return schema.text("muster.rundir.v1.Launch", launch.SerializeAsString()) + "# order\n" +
           schema.text("muster.v1.NodeLaunch", order.SerializeAsString());
  };
  auto found = test::dumps_with("rundir", kRunDumps);
  if (found.empty() && test::writes_dumps()) {
    const TempDir fresh;
    ASSERT_NO_FATAL_FAILURE(write_ended(fresh.path() / "ended"));
    ASSERT_NO_FATAL_FAILURE(write_refused(fresh.path() / "refused"));
    ASSERT_NO_FATAL_FAILURE(write_swept(fresh.path() / "swept"));
    found.push_back(test::next_dump("rundir", kRunDumps));
    test::write_dump_folder(fresh.path(), found.back() / "runs");
    test::write_dump_file(found.back() / "facts.txt", facts_text(fresh.path(), schema));
  }
  ASSERT_FALSE(found.empty()) << "run: " << test::how_to_write("unit_agent_run");
  for (const fs::path& dump : found) {
    SCOPED_TRACE(dump.native());
    const TempDir dir;  // a test must not write into the checkout
    test::copy_dump(dump / "runs", dir.path());
    EXPECT_EQ(
        test::first_line_lost(test::read_dump(dump / "facts.txt"), facts_text(dir.path(), schema)),
        "");
    const auto launch = rundir::read_launch(rundir::RunLayout(dir.path() / "ended"));
    ASSERT_TRUE(launch && *launch);
    EXPECT_EQ(test::first_line_lost(launch_text(**launch), launch_text(frozen_launch())), "");
  }
}

// The agent's part of the launcher shim's environment; the controller's is in shim.env
// (tests/unit/engine/frozen_shim_env_test.cc).
TEST(FrozenShimEnvironment, IsSetByTheAgentAsItWas) {
  const test::DumpFiles files = {"shim-agent.env"};
  const auto set = shim_environment(rundir::RunLayout("/var/lib/muster/agent/runs/0123456789abc.1"),
                                    frozen_order());
  const test::EnvironmentText today(set.begin(), set.end());
  auto found = test::dumps_with("rundir", files);
  if (found.empty() && test::writes_dumps()) {
    found.push_back(test::next_dump("rundir", files));
    test::write_dump_file(found.back() / "shim-agent.env", test::env_text(today));
  }
  ASSERT_FALSE(found.empty()) << "run: " << test::how_to_write("unit_agent_run");
  for (const fs::path& dump : found)
    EXPECT_EQ(test::env_lost(test::read_dump(dump / "shim-agent.env"), today), "")
        << "an older shim misses this, or reads another value: " << dump;
}

// "runs/RUN/logs/rank-N.log": the name without what differs from run to run.
std::string kind_of_file(const fs::path& file, const fs::path& state) {
  std::string name;
  for (const fs::path& part : fs::relative(file, state)) {
    std::string word = part.string();
    if (rundir::AgentLayout::parse_run_name(word)) word = "RUN";
    if (const std::size_t rank = word.find("rank-"); rank != std::string::npos) {
      const std::size_t from = rank + 5, to = word.find_first_not_of("0123456789", from);
      word = word.substr(0, from) + "N" + (to == std::string::npos ? "" : word.substr(to));
    }
    name += (name.empty() ? "" : "/") + word;
  }
  return name;
}

class FrozenNames : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  TempDir dir_;
};

// A file that only a new agent makes is one that nobody has frozen.
TEST_F(FrozenNames, AHostMakesNoFileThatNoDumpHas) {
  // What has no records, see tests/unit/agent/frozen_files_test.cc.
  std::set<std::string> known = {"lock", "write-test", "runs/RUN/wake_fifo",
                                 "runs/RUN/logs/rank-N.log", "runs/RUN/logs/worker.log"};
  for (const fs::path& dump : test::dumps_with("rundir", {"read.txt", "state"})) {
    for (const auto& entry : fs::recursive_directory_iterator(dump / "state"))
      known.insert(kind_of_file(entry.path(), dump / "state"));
  }
  ASSERT_TRUE(known.contains("runs/RUN/lease"))
      << "run: " << test::how_to_write("unit_agent") << " first";
  const fs::path state = dir_.path() / "state";
  HostIncarnation agent(state);
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "echo step", 2)});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  std::set<std::string> made;
  for (const auto& entry : fs::recursive_directory_iterator(state))
    made.insert(kind_of_file(entry.path(), state));
  EXPECT_TRUE(made.contains("runs/RUN/events") && made.contains("runs/RUN/launch"));
  for (const std::string& name : made)
    EXPECT_TRUE(known.contains(name)) << name << " is new: docs/compatibility.md, \"Add a file\"";
}

}  // namespace
}  // namespace muster::agent
