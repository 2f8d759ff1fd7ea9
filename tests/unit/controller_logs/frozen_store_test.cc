// The controller's log store, version 1, is read for ever (docs/compatibility.md). Folders of
// tests/dumps/logs have a store, and read.txt: what today's LogStore must read in it. Today's store
// must also make the same files with the same records, because a controller may be set back.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "common/io/frames.h"
#include "muster/logs/v1/logs.pb.h"
#include "tests/support/dumps.h"
#include "tests/support/schema.h"
#include "tests/unit/controller_logs/store_fixture.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

const test::DumpFiles kStore = {"read.txt", "store"};

std::unique_ptr<LogStore> open_store(const fs::path& root) {
  auto store = LogStore::open(root, 1ULL << 30U);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

// A log with a gap and one whose first bytes the quota removed, a log of a node, a series.
void write_store(const fs::path& root) {
  const JobId job("0123456789abc");
  const LogKey rank{job, AttemptNo(1), RankNo(0)}, evicted{job, AttemptNo(1), RankNo(1)},
      setup{job, AttemptNo(1), RankNo(0), "setup", NodeName("n.07")};
  const auto second = [](std::int64_t number) { return WallTime(std::chrono::seconds(number)); };
  {
    const auto store = open_store(root);
    ASSERT_TRUE(store->append(rank, 0, "step 1\n", {}));
    ASSERT_TRUE(store->append(
        rank, 107, "step 3\n",
        Gap{.from = 7, .to = 107, .reason = "the node lost them", .at = second(1'800'000'000)}));
    ASSERT_TRUE(store->finish(rank, 114));
    ASSERT_TRUE(store->append(setup, 0, "installing\n", {}));
    ASSERT_TRUE(store->append(evicted, 0, "gone\n", {}));
    ASSERT_TRUE(store->append(evicted, 5, "kept\n", {}));
    ASSERT_TRUE(store->add_points(
        job, {SeriesPoint{.at = second(1'800'000'001), .attempt = AttemptNo(1), .step = 1},
              SeriesPoint{.at = second(1'800'000'002),
                          .attempt = AttemptNo(1),
                          .step = 3,
                          .loss = 2.5,
                          .has_loss = true}}));
    store->mark_finished(job);
    ASSERT_FALSE(store->sync().error);
  }
  // As a kill leaves it between the record and the hole.
  v1::IndexRecord record;
  record.mutable_evicted()->set_to(5);
  record.mutable_evicted()->set_at_ns(1'800'000'003'000'000'000);
  auto index = io::FrameWriter::open(root / job.str() / "1/rank-1.index");
  ASSERT_TRUE(index && index->append(record.SerializeAsString()));
}

std::string store_text(const fs::path& root) {
  const auto store = open_store(root);
  std::string text;
  for (const JobId& job : store->jobs()) {
    for (const LogKey& key : store->list(job)) {
      const LogState state = *store->state(key);
      text += "# " + job.str() + " " + std::to_string(key.attempt.value) + " " + file_stem(key) +
              "\nend " + std::to_string(state.end) + " durable " + std::to_string(state.durable) +
              " last line " + std::to_string(*store->tail(key, 1)) + " since ever " +
              std::to_string(*store->since(key, WallTime())) + "\n";
      for (std::uint64_t at = 0;;) {
        const Chunk chunk = *store->read(key, at, 1'000);
        if (chunk.data.empty() && !chunk.gap_before) break;
        if (chunk.gap_before)
          text += "gap " + std::to_string(chunk.gap_before->from) + " " +
                  std::to_string(chunk.gap_before->to) + " " + chunk.gap_before->reason + "\n";
        text += "at " + std::to_string(chunk.offset) + ": " + chunk.data;
        at = chunk.offset + chunk.data.size();
      }
    }
    const auto series = store->series(job);
    for (const SeriesPoint& point : *series)
      text += "point " + std::to_string(point.at.time_since_epoch().count()) + " " +
              std::to_string(point.attempt.value) + " " + std::to_string(point.step) + " " +
              (point.has_loss ? std::to_string(point.loss) : "-") + "\n";
  }
  return text;
}

// Kinds of records that the store has ("time"), and their text, without the times of arrival.
struct StoreRecords {
  std::set<std::string> files, kinds;
  std::string text;
};
StoreRecords records_of(const fs::path& root, test::Schema& schema) {
  StoreRecords found;
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (!entry.is_directory()) files.insert(entry.path());
  for (const fs::path& file : files) {
    const std::string name = fs::relative(file, root).string();
    found.files.insert(name);
    const bool index = file.extension() == ".index";
    if (!index && file.filename() != "series") continue;
    found.text += "# " + name + "\n";
    const auto frames = io::read_frames(file, 0);
    EXPECT_TRUE(frames && frames->tail == io::Tail::Clean) << file;
    for (const std::string& frame : frames->frames) {
      v1::IndexRecord record;
      if (index && record.ParseFromString(frame)) {
        const auto* kind = schema.type("muster.logs.v1.IndexRecord")
                               .FindFieldByNumber(static_cast<int>(record.what_case()));
        found.kinds.insert(kind == nullptr ? "none" : kind->name());
        // When the dump was written.
        if (record.has_time()) record.mutable_time()->set_at_ns(1);
      }
      found.text += "- record\n" +
                    (index ? schema.text("muster.logs.v1.IndexRecord", record.SerializeAsString())
                           : schema.text("muster.logs.v1.SeriesBatch", frame));
    }
  }
  return found;
}

TEST(FrozenStore, IsReadAndWrittenAsItWas) {
  test::Schema schema;
  const test::TempDir fresh;
  ASSERT_NO_FATAL_FAILURE(write_store(fresh.path() / "store"));
  const StoreRecords today = records_of(fresh.path() / "store", schema);
  std::set<std::string> missing;
  const auto& kinds = *schema.type("muster.logs.v1.IndexRecord").FindOneofByName("what");
  for (int i = 0; i < kinds.field_count(); ++i) missing.insert(kinds.field(i)->name());
  const auto reads = [&](const fs::path& dump) {
    SCOPED_TRACE(dump.native());
    const StoreRecords frozen = records_of(dump / "store", schema);
    EXPECT_EQ(test::first_line_lost(frozen.text, today.text), "");
    for (const std::string& name : frozen.files) EXPECT_TRUE(today.files.contains(name)) << name;
    for (const std::string& kind : frozen.kinds) missing.erase(kind);
    const test::TempDir dir;  // a test must not write into the checkout
    fs::copy(dump / "store", dir.path() / "store", fs::copy_options::recursive);
    EXPECT_EQ(store_text(dir.path() / "store"), test::read_dump(dump / "read.txt"));
  };
  for (const fs::path& dump : test::dumps_with("logs", kStore)) reads(dump);
  if (missing.empty()) return;
  if (test::writes_dumps()) {
    const fs::path dump = test::next_dump("logs", kStore);
    test::write_dump_folder(fresh.path() / "store", dump / "store");
    test::write_dump_file(dump / "read.txt", store_text(fresh.path() / "store"));
    reads(dump);
  }
  for (const std::string& kind : missing)
    ADD_FAILURE() << "no store in tests/dumps/logs has a record '" << kind
                  << "'; run: " << test::how_to_write("unit_controller_logs");
}

}  // namespace
}  // namespace muster::logs
