// Regression: a client that was one release newer submitted a job with a key that this version does
// not know. protobuf keeps such a field, so it was journaled with the spec. At the next start the
// row was one that "a newer muster wrote", and the controller refused its own journal for ever,
// also with --accept-loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/journal/archive_table.h"
#include "controller/journal/schema.h"
#include "muster/journal/v1/record.pb.h"
#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void add_unknown(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(100,
                                                                              "of a newer muster");
}

// Every event of the samples that contains a message of the protocol, each with a field of a newer
// version at every depth.
std::vector<core::Event> with_unknown_fields() {
  std::vector<core::Event> events;
  for (core::Event event : one_of_every_kind()) {
    if (auto* submitted = std::get_if<core::JobSubmitted>(&event.body)) {
      add_unknown(submitted->spec);
      add_unknown(*submitted->resolved.mutable_start());
      add_unknown(*submitted->spec.mutable_recovery()->mutable_window());
    } else if (auto* registered = std::get_if<core::NodeRegistered>(&event.body)) {
      add_unknown(registered->inventory);
      add_unknown(*registered->inventory.mutable_devices(0));
    } else if (auto* started = std::get_if<core::NodeStarted>(&event.body)) {
      add_unknown(started->resolved);
    } else {
      continue;
    }
    events.push_back(std::move(event));
  }
  return events;
}

TEST(UnknownFields, AreLeftOutSoThatWhatWasWrittenCanBeRead) {
  const auto events = with_unknown_fields();
  ASSERT_EQ(events.size(), 3u);
  for (const core::Event& event : events) {
    const auto back = decode(encode(event));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(encode(*back), encode(event));
  }
}

// Returns why decode() refuses the record; empty: it does not.
std::string refusal(const v1::Record& record) {
  const auto decoded = decode({.format = kFormatProto,
                               .type = static_cast<std::uint32_t>(record.what_case()),
                               .payload = record.SerializeAsString()});
  if (decoded) return {};
  EXPECT_EQ(decoded.error().code, ErrorCode::Unsupported);
  return decoded.error().message;
}

// proto3 keeps values of an enum that it does not know. Each would be another decision here than
// at the controller that wrote the row.
TEST(UnknownValues, AreRefusedByTheirPathAtEveryDepth) {
  const auto refuses = [](const std::string& path, const auto& change) {
    v1::Record record;
    ASSERT_TRUE(record.ParseFromString(encode(submitted("j1", "one")).payload));
    ASSERT_EQ(refusal(record), "");
    change(*record.mutable_job_submitted());
    EXPECT_THAT(refusal(record), HasSubstr("it has '" + path + "', which is not known here"));
  };
  using Submitted = v1::JobSubmitted;
  refuses("job_submitted.spec.launch.per: value 9", [](Submitted& to) {
    to.mutable_spec()->mutable_launch()->set_per(static_cast<muster::v1::LaunchPer>(9));
  });
  refuses("job_submitted.spec.launch.launcher: value 77", [](Submitted& to) {
    to.mutable_spec()->mutable_launch()->set_launcher(static_cast<muster::v1::Launcher>(77));
  });
  refuses("job_submitted.spec.start.as: value -1", [](Submitted& to) {
    to.mutable_spec()->mutable_start()->set_as(static_cast<muster::v1::StartAs>(-1));
  });
  refuses("job_submitted.spec.checkpoint.storage: value 9", [](Submitted& to) {
    to.mutable_spec()->mutable_checkpoint()->set_storage(
        static_cast<muster::v1::CheckpointStorage>(9));
  });
  refuses("job_submitted.spec.recovery.window: field 100", [](Submitted& to) {
    add_unknown(*to.mutable_spec()->mutable_recovery()->mutable_window());
  });
  refuses("job_submitted.resolved.fetches: field 100",
          [](Submitted& to) { add_unknown(*to.mutable_resolved()->add_fetches()); });
  refuses("job_submitted: field 100", [](Submitted& to) { add_unknown(to); });
  v1::Record whole;
  whole.mutable_caught_up()->set_job("j1");
  add_unknown(whole);
  EXPECT_THAT(refusal(whole), HasSubstr("it has 'field 100', which"));
}

// As unknown fields: what an agent or a client of a newer version sent must not make the journal
// unreadable.
TEST(UnknownValues, AreNotWritten) {
  core::Event event = submitted("j1", "one");
  auto& spec = std::get<core::JobSubmitted>(event.body).spec;
  spec.mutable_start()->set_as(static_cast<muster::v1::StartAs>(9));
  spec.mutable_start()->set_from("path:/data/x");
  const auto back = decode(encode(event));
  ASSERT_TRUE(back) << back.error().message;
  const auto& read = std::get<core::JobSubmitted>(back->body).spec;
  EXPECT_EQ(read.start().as(), muster::v1::START_AS_UNSPECIFIED);
  EXPECT_EQ(read.start().from(), "path:/data/x");
  EXPECT_EQ(read.launch().per(), spec.launch().per());
}

TEST(UnknownFields, DoNotKeepAJournalFromBeingLoadedOrTidied) {
  TempDir dir;
  core::Event newer = submitted("j1", "one");
  add_unknown(*std::get<core::JobSubmitted>(newer.body).spec.mutable_launch());
  {
    Opened opened = open_journal(dir.path());
    append(*opened.journal, {started(1), newer, submitted("j2", "two")});
  }
  Opened again = open_journal(dir.path());
  ASSERT_FALSE(again.error) << again.error->message;
  EXPECT_EQ(again.rows.size(), 3u);
  append(*again.journal, {ended("j1"), archived("j1", "one")});
  const auto done = again.journal->archive(JobId("j1"));
  ASSERT_TRUE(done) << done.error().message;
  const auto job = again.journal->archived_job(JobId("j1"));
  ASSERT_TRUE(job && *job);
  EXPECT_EQ((*job)->damage, "");
  EXPECT_EQ((*job)->name, "one");
}

// A row that cannot be read here concerns only one job. Regression: it kept the rows of all other
// jobs in the replay.
TEST(Archive, TakesARowThatOnlyANewerVersionCanRead) {
  TempDir dir;
  auto database = Database::open(dir.path() / "archive.db", Database::Mode::Write, kDatabaseText);
  ASSERT_TRUE(database);
  ASSERT_TRUE(make_tables(**database, std::string(32, '0')));
  auto table = ArchiveTable::open(**database);
  ASSERT_TRUE(table) << table.error().message;
  v1::Record newer;
  ASSERT_TRUE(newer.ParseFromString(encode(submitted("j1", "one")).payload));
  add_unknown(*newer.mutable_job_submitted()->mutable_spec());
  const std::vector<RowTable::Stored> rows = {
      {.index = JournalIndex(2),
       .record = {.type = 14, .payload = newer.SerializeAsString()},
       .from = JournalIndex(2)},
      {.index = JournalIndex(3), .record = encode(ended("j1")), .from = JournalIndex(3)}};
  const auto added = table->add(JobId("j1"), rows);
  ASSERT_TRUE(added) << added.error().message;
  const auto found = table->find(JobId("j1"));
  ASSERT_TRUE(found && *found);
  EXPECT_THAT((*found)->damage,
              HasSubstr("row 2 of job 'j1': it has 'job_submitted.spec: field 100', which is not "
                        "known here"));
}

}  // namespace
}  // namespace muster::journal
