// Journals of version 1 replay for ever (docs/compatibility.md). Each folder of tests/dumps/journal
// has one journal with its head, the rows that it must give as text, and a mark that replaces a
// head (controller/journal/head.h). v1 is version 1 as it was frozen.
//
// A new kind of row, or a new kind of fact, needs a further folder: v1.1 and so on. With
// MUSTER_WRITE_DUMP=tests/dumps this test writes one, if a kind of today is in none of them. A new
// field of an existing kind needs no journal: it gets its line in schema.txt
// (tests/unit/proto/frozen_schema_test.cc). Its absence means what older versions meant, so the
// rows here stay as they are.
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "controller/journal/codec.h"
#include "controller/journal/head.h"
#include "tests/support/dumps.h"
#include "tests/unit/journal/journal_dir.h"

namespace muster::journal {
namespace {

std::string joined(const std::vector<std::string>& rows) {
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}
// Rows of the replay, then of the archive.
std::string everything_in(const Opened& opened) {
  std::string text = "# replay\n" + joined(opened.rows) + "# archive\n";
  const auto jobs = opened.journal->archived({}, 1'000);
  for (const ArchivedJob& job : *jobs) {
    text += "job " + job.job.value + " " + job.name + "\n";
    for (const Row& row : job.rows) text += text_of(row) + "\n";
  }
  return text;
}

// What the file `mark` of each folder contains.
const Behind kBehind{.why = "n07 has seen epoch 9", .generation = 7};

void write_dump(const std::filesystem::path& dir) {
  TempDir temporary;
  if (!HeadFile::mark_behind(temporary.path() / "mark", kBehind.why, kBehind.generation))
    throw std::runtime_error("marking");
  {
    Opened opened = open_journal(temporary.path());
    append(*opened.journal,
           {started(1), submitted("j1", "one"), submitted("j2", "two"), exited("j1", 0, 0),
            ended("j1"), archived("j1", "one"), exited("j2", 1, 1)});
    append(*opened.journal, {submitted("j3", "three"), ended("j3"), archived("j3", "three")});
    for (const char* job : {"j1", "j3"}) {
      if (!opened.journal->archive(JobId(job))) throw std::runtime_error("archiving");
    }
    for (core::Event& event : one_of_every_kind()) {
      // Rows of the last two kinds are those of j1 and j3.
      if (!std::holds_alternative<core::JobArchived>(event.body) &&
          !std::holds_alternative<core::TombstoneDropped>(event.body))
        append(*opened.journal, {event});
    }
  }
  {
    append(*open_journal(temporary.path()).journal, {started(2), tombstone_dropped("j3")});
  }
  sql(temporary.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  for (const char* file : {"journal.db", "head", "mark"})
    write_all(dir / file, read_all(temporary.path() / file));
  // Last, because this load drops rows that have no effect.
  write_all(dir / "rows.txt", everything_in(open_journal(temporary.path())));
}

// The kind of a record, by its bytes: "job_ended", "agent_fact exited".
std::string kind_of(const std::string& payload) {
  const auto* type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
      "muster.journal.v1.Record");
  const std::unique_ptr<google::protobuf::Message> record(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  if (!record->ParseFromString(payload)) throw std::runtime_error("a record does not parse");
  const auto member = [](const google::protobuf::Message& message) {
    return message.GetReflection()->GetOneofFieldDescriptor(
        message, message.GetDescriptor()->FindOneofByName("what"));
  };
  const auto* kind = member(*record);
  if (kind == nullptr) return "none";
  const auto& body = record->GetReflection()->GetMessage(*record, kind);
  const auto* inside = body.GetDescriptor()->FindFieldByName("fact");
  if (inside == nullptr) return kind->name();
  const auto* fact = member(body.GetReflection()->GetMessage(body, inside));
  return kind->name() + " " + (fact == nullptr ? "none" : fact->name());
}
// The kinds of the rows in rows.txt. A row's last word is its record in hexadecimal digits.
std::set<std::string> kinds_in(const std::string& rows) {
  std::set<std::string> kinds;
  std::istringstream lines(rows);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string index, kind, job, digits, payload;
    if (!(words >> index >> kind >> job >> digits)) continue;  // a heading
    for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
      payload += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
    kinds.insert(kind_of(payload));
  }
  return kinds;
}
std::set<std::string> kinds_of_today() {
  std::set<std::string> kinds;
  for (const core::Event& event : one_of_every_kind()) kinds.insert(kind_of(encode(event).payload));
  return kinds;
}

TEST(FrozenJournal, ReplaysForEver) {
  std::set<std::string> missing = kinds_of_today();
  const auto replays = [&missing](const std::filesystem::path& dump) {
    SCOPED_TRACE(dump.native());
    TempDir dir;
    copy_dir(dump, dir.path() / "journal");  // a test must not write into the checkout
    const Opened opened = open_journal(dir.path() / "journal");
    ASSERT_FALSE(opened.error) << opened.error->message;
    const std::string rows = read_all(dump / "rows.txt");
    EXPECT_EQ(everything_in(opened), rows);
    const std::optional<Behind> behind = HeadFile::behind(dump / "mark");
    EXPECT_TRUE(behind && behind->why == kBehind.why && behind->generation == kBehind.generation);
    for (const std::string& kind : kinds_in(rows)) missing.erase(kind);
  };
  for (const auto& dump : test::dumps_with("journal", "rows.txt")) replays(dump);
  if (missing.empty()) return;
  if (test::writes_dumps()) {
    const std::filesystem::path dump = test::next_dump("journal", "rows.txt");
    write_dump(dump);
    replays(dump);
  }
  for (const std::string& kind : missing) {
    ADD_FAILURE() << "no journal in tests/dumps has a row of kind " << kind
                  << ", so nothing proves that later versions read it; run: "
                  << test::how_to_write("unit_journal");
  }
}

}  // namespace
}  // namespace muster::journal
