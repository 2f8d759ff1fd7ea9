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
  auto database = Database::open(dir.path() / "archive.db", Database::Mode::Write);
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
              HasSubstr("row 2 of job 'j1': it has fields that are not known here"));
}

}  // namespace
}  // namespace muster::journal
