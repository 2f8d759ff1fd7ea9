// Files of an agent's state directory and of its run directories, version 1, are read for ever,
// because workers and their directories outlive upgrades (docs/compatibility.md). Each folder of
// tests/dumps/rundir has a state directory, and read.txt: what today's readers must read in it.
//
// Writers are frozen, too: a worker of an older release reads the lease that today's agent writes.
// So today's writers must write the same bytes, or the same fields and more of them.
//
// The state directory has every file that the agent or the worker reads again: identity, devices,
// launch, claim, lease, events, mark, and the cursors of logs. Every kind of record is in it, with
// every field set. These files are not in it:
//
// - `launches`: tests/unit/worker/frozen_launches_test.cc.
// - A run whose records belong together, and the names of the files that a host makes:
//   tests/unit/agent_run/frozen_run_test.cc.
// - `lock` and `wake_fifo` have no content, and `write-test` is removed at once.
// - Logs, `plog` and `setup.env` have what the job's own programs write. `setup.sh` and `shim/` are
//   read by these programs, and only within the attempt for which they were made.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/logs/cursor_file.h"
#include "agent/probe/kept_devices.h"
#include "agent/run/state_dir.h"
#include "common/io/frames.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"
#include "tests/support/dumps.h"
#include "tests/support/schema.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

const BootId kBoot{"boot-1"};

template <class Record>
Record parsed(const std::string& bytes) {
  Record record;
  if (!record.ParseFromString(bytes)) throw std::runtime_error("a sample does not parse");
  return record;
}

// Writes all files with fixed contents.
void write_state(const fs::path& path, test::Schema& schema) {
  const InstanceId instance("0123456789abcdef0123456789abcdef");
  {
    auto state = StateDir::open(path);
    ASSERT_TRUE(state) << state.error().message;
    ASSERT_TRUE(state->store({.instance = instance,
                              .cluster = ClusterId("c-1"),
                              .lineage = {.generation = 2, .id = "lineage-2"},
                              .highest_epoch = Epoch(4),
                              .acked = JournalIndex(99)}));
  }
  const rundir::AgentLayout layout(path);
  fs::remove(layout.lock());
  auto inventory = parsed<v1::Inventory>(schema.samples("muster.v1.Inventory").front());
  inventory.mutable_devices(0)->set_type("ascend910b");
  ASSERT_TRUE(
      probe::store_kept(layout.devices(), probe::encode_kept(instance, kBoot, "0.1.0", inventory)));

  const rundir::RunLayout run(layout.run(JobId("0123456789abc"), AttemptNo(2)));
  ASSERT_TRUE(rundir::make_run(run));
  fs::remove(run.wake_fifo());
  auto launch = parsed<rundir::v1::Launch>(schema.samples("muster.rundir.v1.Launch").front());
  launch.set_version(1);  // 2, with which an older reader does nothing, has the same fields
  launch.set_order(schema.samples("muster.v1.NodeLaunch").front());
  ASSERT_TRUE(rundir::write_launch(run, launch));
  ASSERT_TRUE(rundir::write_claim(
      run, parsed<rundir::v1::Claim>(schema.samples("muster.rundir.v1.Claim").front())));
  ASSERT_TRUE(rundir::write_lease(run, BootTime(std::chrono::seconds(90)), kBoot));
  auto events = rundir::EventWriter::open(run.events());
  auto marks = rundir::MarkWriter::open(run.mark());
  ASSERT_TRUE(events && marks);
  for (const std::string& bytes : schema.samples("muster.rundir.v1.Event"))
    ASSERT_TRUE(events->append(parsed<rundir::v1::Event>(bytes)));
  for (const std::string& bytes : schema.samples("muster.rundir.v1.Mark"))
    ASSERT_TRUE(marks->append(parsed<rundir::v1::Mark>(bytes)));
  for (const fs::path& file :
       {run.rank_cursor(0), run.node_log_cursor("scheduler"),
        run.node_log_cursor(rundir::kSetupLog), run.node_log_source("rank-5")}) {
    auto cursor = CursorFile::load(file);
    ASSERT_TRUE(cursor) << cursor.error().message;
    for (const std::string& bytes : schema.samples("muster.logs.v1.CursorRecord"))
      ASSERT_TRUE(cursor->append(parsed<logs::v1::CursorRecord>(bytes)));
  }
}

// Reads a state directory, and notes what was read.
class Reading {
 public:
  Reading(const fs::path& state, test::Schema& schema) : layout_(state), schema_(schema) {
    read_agent();
    const auto runs = rundir::list_runs(layout_);
    EXPECT_TRUE(runs);
    for (const rundir::RunFound& found : *runs)
      read_run(rundir::RunLayout(layout_.run(found.job, found.attempt)));
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  // Paths below the state directory.
  [[nodiscard]] const std::set<std::string>& files() const { return files_; }
  // Names of files, and kinds of records: "events", "muster.rundir.v1.Event started".
  [[nodiscard]] const std::set<std::string>& parts() const { return parts_; }

 private:
  void begin(const fs::path& file) {
    const std::string name = fs::relative(file, layout_.root()).string();
    files_.insert(name);
    parts_.insert(file.filename().string());
    text_ += "# " + name + "\n";
  }
  // One record. `number` is that of its kind.
  template <class Record>
  void add(const std::string& type, const Record& record, int number = 0) {
    text_ += "- " + type + "\n" + schema_.text(type, record.SerializeAsString());
    if (number == 0) return;
    const auto* kind = schema_.type(type).FindFieldByNumber(number);
    ASSERT_NE(kind, nullptr) << type << " has no kind " << number;
    parts_.insert(type + " " + kind->name());
  }

  void read_agent() {
    begin(layout_.identity());
    const auto identity = read_identity(layout_);
    ASSERT_TRUE(identity) << identity.error().message;
    text_ += "instance " + identity->instance.str() + "\ncluster " + identity->cluster.str() +
             "\nlineage " + std::to_string(identity->lineage.generation) + " " +
             identity->lineage.id + "\nhighest epoch " +
             std::to_string(identity->highest_epoch.value) + "\nacknowledged index " +
             std::to_string(identity->acked.value) + "\n";
    begin(layout_.devices());
    const auto devices = probe::load_kept(layout_.devices(), identity->instance, kBoot);
    ASSERT_TRUE(devices && *devices);
    text_ += (*devices)->this_boot ? "of this boot\n" : "of another boot\n";
    add("muster.v1.Inventory", (*devices)->inventory);
  }

  void read_run(const rundir::RunLayout& run) {
    begin(run.launch());
    auto launch = rundir::read_launch(run);
    ASSERT_TRUE(launch && *launch);
    const auto order = parsed<v1::NodeLaunch>((*launch)->order());
    (*launch)->clear_order();
    add("muster.rundir.v1.Launch", **launch);
    add("muster.v1.NodeLaunch", order);
    begin(run.claim());
    const auto claim = rundir::read_claim(run);
    ASSERT_TRUE(claim && *claim);
    add("muster.rundir.v1.Claim", **claim);
    begin(run.lease());
    const auto lease = rundir::read_lease(run);
    ASSERT_TRUE(lease && *lease);
    EXPECT_EQ(rundir::lease_end(**lease, kBoot), BootTime(std::chrono::seconds(90)));
    add("muster.rundir.v1.Lease", **lease);
    read_log<rundir::EventReader>("muster.rundir.v1.Event", run.events());
    read_log<rundir::MarkReader>("muster.rundir.v1.Mark", run.mark());
    std::set<fs::path> cursors;
    for (const auto& file : fs::directory_iterator(run.logs())) cursors.insert(file.path());
    for (const fs::path& file : cursors) {
      begin(file);
      const auto cursor = CursorFile::load(file);
      ASSERT_TRUE(cursor) << cursor.error().message;
      ASSERT_TRUE(cursor->segment() && cursor->floor() && cursor->parsed());
      using logs::v1::CursorRecord;
      CursorRecord record;
      *record.mutable_segment() = *cursor->segment();
      add("muster.logs.v1.CursorRecord", record, record.what_case());
      *record.mutable_floor() = *cursor->floor();
      add("muster.logs.v1.CursorRecord", record, record.what_case());
      *record.mutable_parsed() = *cursor->parsed();
      add("muster.logs.v1.CursorRecord", record, record.what_case());
    }
  }
  template <class Reader>
  void read_log(const std::string& type, const fs::path& file) {
    begin(file);
    Reader reader(file);
    const auto records = reader.read();
    ASSERT_TRUE(records);
    EXPECT_FALSE(reader.damaged());
    for (const auto& record : *records) add(type, record, record.what_case());
  }

  rundir::AgentLayout layout_;
  test::Schema& schema_;
  std::string text_;
  std::set<std::string> files_, parts_;
};

// The records of a file as they were written, whatever the readers make of them.
std::string written(const fs::path& file, test::Schema& schema) {
  static const std::map<std::string, std::string> kTypes = {
      {"identity", "muster.rundir.v1.Identity"}, {"devices", "muster.v1.Hello"},
      {"launch", "muster.rundir.v1.Launch"},     {"claim", "muster.rundir.v1.Claim"},
      {"lease", "muster.rundir.v1.Lease"},       {"events", "muster.rundir.v1.Event"},
      {"mark", "muster.rundir.v1.Mark"}};
  const auto type = kTypes.find(file.filename().string());
  const auto frames = io::read_frames(file, 0);
  EXPECT_TRUE(frames && frames->tail == io::Tail::Clean && !frames->more) << file;
  std::string text;
  for (std::string frame : frames->frames) {
    text += "- record\n";
    if (file.filename() == "launch") {
      auto launch = parsed<rundir::v1::Launch>(frame);
      text += schema.text("muster.v1.NodeLaunch", launch.order());
      launch.clear_order();
      frame = launch.SerializeAsString();
    }
    text += schema.text(type == kTypes.end() ? "muster.logs.v1.CursorRecord" : type->second, frame);
  }
  return text;
}
// Compares each file of the dump with the one that today's writers make.
void check_writers(const fs::path& dump, const fs::path& fresh, const std::set<std::string>& files,
                   test::Schema& schema) {
  for (const std::string& name : files) {
    SCOPED_TRACE(name);
    const std::string before = written(dump / name, schema), now = written(fresh / name, schema);
    EXPECT_EQ(test::first_line_lost(before, now), "") << "an older reader misses this";
    if (now == before) {
      EXPECT_EQ(test::read_dump(fresh / name), test::read_dump(dump / name));
    }
  }
}

std::set<std::string> files_below(const fs::path& root) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (!entry.is_directory()) names.insert(fs::relative(entry.path(), root).string());
  return names;
}

const test::DumpFiles kState = {"read.txt", "state"};

TEST(FrozenFiles, AreReadAndWrittenAsTheyWere) {
  test::Schema schema;
  const TempDir fresh;
  ASSERT_NO_FATAL_FAILURE(write_state(fresh.path() / "state", schema));
  std::set<std::string> missing = Reading(fresh.path() / "state", schema).parts();
  // Every kind of proto/, also one that the readers here do not know.
  for (const char* type :
       {"muster.rundir.v1.Event", "muster.rundir.v1.Mark", "muster.logs.v1.CursorRecord"}) {
    const auto& kinds = *schema.type(type).FindOneofByName("what");
    for (int i = 0; i < kinds.field_count(); ++i)
      missing.insert(std::string(type) + " " + kinds.field(i)->name());
  }
  const auto reads = [&](const fs::path& dump) {
    SCOPED_TRACE(dump.native());
    const TempDir dir;  // a test must not write into the checkout
    test::copy_dump(dump / "state", dir.path() / "state");
    const std::set<std::string> there = files_below(dir.path() / "state");
    const Reading reading(dir.path() / "state", schema);
    EXPECT_EQ(reading.files(), there) << "a file of the dump is not read";
    EXPECT_EQ(reading.text(), test::read_dump(dump / "read.txt"));
    check_writers(dump / "state", fresh.path() / "state", there, schema);
    for (const std::string& part : reading.parts()) missing.erase(part);
  };
  for (const fs::path& dump : test::dumps_with("rundir", kState)) reads(dump);
  if (missing.empty()) return;
  if (test::writes_dumps()) {
    const fs::path dump = test::next_dump("rundir", kState);
    test::write_dump_folder(fresh.path() / "state", dump / "state");
    test::write_dump_file(dump / "read.txt", Reading(dump / "state", schema).text());
    reads(dump);
  }
  for (const std::string& part : missing) {
    ADD_FAILURE() << "no state directory in tests/dumps/rundir has this: " << part
                  << "; run: " << test::how_to_write("unit_agent");
  }
}

}  // namespace
}  // namespace muster::agent
