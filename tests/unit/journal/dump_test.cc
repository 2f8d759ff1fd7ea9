// Journals of version 1 replay for ever (docs/compatibility.md). A folder of tests/dumps/journal
// has one journal with its head, the rows that it must give as text, and a mark that replaces a
// head (controller/journal/head.h). v1 is version 1 as it was frozen.
//
// Such a journal has every kind of row with every field, and its rows make no history. A second one
// does, and freezes what they mean (ledger.txt): the ledger that the core folds from them.
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

#include "controller/core/core.h"
#include "controller/core/dump.h"
#include "controller/journal/codec.h"
#include "controller/journal/head.h"
#include "tests/support/dumps.h"
#include "tests/unit/controller_core/chain_world.h"
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

const test::DumpFiles kRows = {"rows.txt", "journal.db", "head", "mark"};

// What the file `mark` of each folder contains.
const Behind kBehind{.why = "n07 has seen epoch 9", .generation = 7};

// A row of such a kind has no effect at the next load, and is dropped by it.
bool ends_itself(const core::Event& event) {
  return std::holds_alternative<core::NodeUndrained>(event.body) ||
         std::holds_alternative<core::NodeRemoved>(event.body) ||
         std::holds_alternative<core::SecretRemoved>(event.body) ||
         std::holds_alternative<core::StoreRemoved>(event.body);
}

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
          !std::holds_alternative<core::TombstoneDropped>(event.body) && !ends_itself(event))
        append(*opened.journal, {event});
    }
  }
  {
    const Opened opened = open_journal(temporary.path());
    append(*opened.journal, {started(2), tombstone_dropped("j3")});
    for (core::Event& event : one_of_every_kind()) {
      if (ends_itself(event)) append(*opened.journal, {event});
    }
  }
  sql(temporary.path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  for (const char* file : {"journal.db", "head", "mark"})
    test::write_dump_file(dir / file, read_all(temporary.path() / file));
  // Last, because this load drops rows that have no effect.
  test::write_dump_file(dir / "rows.txt", everything_in(open_journal(temporary.path())));
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
// `digits` are the hexadecimal digits of a record.
std::string kind_of_digits(const std::string& digits) {
  std::string payload;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
    payload += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  return kind_of(payload);
}
// The kinds of the rows in rows.txt. A row's last word is its record in hexadecimal digits.
std::set<std::string> kinds_in(const std::string& rows) {
  std::set<std::string> kinds;
  std::istringstream lines(rows);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string index, kind, job, digits;
    if (words >> index >> kind >> job >> digits) kinds.insert(kind_of_digits(digits));
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
    // Some rows are dropped when they are loaded: what is in the file counts, too.
    for (const std::string& digits :
         sql_texts(dir.path() / "journal", "SELECT hex(payload) FROM rows WHERE format != 0"))
      missing.erase(kind_of_digits(digits));
    const Opened opened = open_journal(dir.path() / "journal");
    ASSERT_FALSE(opened.error) << opened.error->message;
    const std::string rows = read_all(dump / "rows.txt");
    EXPECT_EQ(everything_in(opened), rows);
    const auto content = HeadFile::read(dump / "mark");
    const auto* mark = content ? std::get_if<Behind>(&*content) : nullptr;
    EXPECT_TRUE(mark != nullptr && mark->why == kBehind.why &&
                mark->generation == kBehind.generation);
    for (const std::string& kind : kinds_in(rows)) missing.erase(kind);
  };
  for (const auto& dump : test::dumps_with("journal", kRows)) replays(dump);
  if (missing.empty()) return;
  if (test::writes_dumps()) {
    const std::filesystem::path dump = test::next_dump("journal", kRows);
    write_dump(dump);
    replays(dump);
  }
  for (const std::string& kind : missing) {
    ADD_FAILURE() << "no journal in tests/dumps has a row of kind " << kind
                  << ", so nothing proves that later versions read it; run: "
                  << test::how_to_write("unit_journal");
  }
}

// --- what the rows mean --------------------------------------------------------------------------
// `history` is a whole journal; in `accepted` the end of it was lost, and no row records that yet.
const test::DumpFiles kHistory = {"ledger.txt", "history/journal.db", "history/head",
                                  "accepted/journal.db", "accepted/head"};
constexpr std::uint64_t kRowsLost = 2;

struct Folded {
  std::unique_ptr<SqliteJournal> journal;
  core::Ledger ledger;
};
Folded folded(const std::filesystem::path& dir) {
  Folded made;
  auto journal = SqliteJournal::open(options_for(dir));
  if (!journal) throw std::runtime_error(journal.error().message);
  made.journal = std::move(*journal);
  const auto loaded = made.journal->load(
      [&made](const Row& row) { core::apply(made.ledger, row.index, row.event); });
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return made;
}

// One node, through the core: j0 is archived. j1 runs, and k1 of the chain k1, k2 has succeeded
// when the journal's end is lost. Then j1 breaks, goes on from its checkpoint, and succeeds, as k2.
class FrozenHistory {
 public:
  FrozenHistory() {
    add({.at = world_.now.wall,
         .body = core::ControllerStarted{
             .epoch = Epoch(1), .cluster = ClusterId("c-1"), .version = "0.1.0"}});
    world_.limits.archive_after = Duration::zero();
    world_.submit("j0", core::SmallWorld::spec("prepare", 1, 1), "r0");
    run("j0", 1);
    later();
    world_.exited("j0", 1, "n0", 0, 0);
    world_.swept("j0", 1, "n0");
    world_.logs("j0", 1, "n0");
    world_.settle();
    world_.limits = core::Limits{};

    world_.submit("j1", core::SmallWorld::spec("train", 1, 1), "r1");
    run("j1", 1);
    muster::v1::Fact step = world_.fact("j1", 1);
    step.mutable_first_step()->set_step(1);
    world_.report("n0", step);
    later();
    world_.checkpoint("j1", 1, 100);
    world_.chain("tune", {{"k1", "a"}, {"k2", "b", {"k1"}}}, "r2");
    run("k1", 1);
    later();
    world_.succeed("k1");
    run("k2", 1);
    take_rows();
    before_loss_ = events_.size();

    later();
    world_.accept(
        {.events = {core::JournalEndLost{.lineage = {.generation = 1, .id = "lineage-1"},
                                         .attempts_skipped = static_cast<std::uint32_t>(kRowsLost)},
                    core::ControllerStarted{
                        .epoch = Epoch(2), .cluster = ClusterId("c-1"), .version = "0.1.0"}}});
    world_.settle();
    later();
    world_.exited("j1", 1, "n0", 0, -1, 9);
    later();
    world_.swept("j1", 1, "n0");
    run("j1", 4);
    later();
    world_.exited("j1", 4, "n0", 0, 0);
    world_.swept("j1", 4, "n0");
    world_.succeed("k2");
    take_rows();
  }
  [[nodiscard]] std::vector<core::Event> before_loss() const {
    return {events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(before_loss_)};
  }
  [[nodiscard]] std::vector<core::Event> behind_loss() const {
    return {events_.begin() + static_cast<std::ptrdiff_t>(before_loss_), events_.end()};
  }

 private:
  void add(core::Event event) { events_.push_back(std::move(event)); }
  void take_rows() {
    for (; taken_ < world_.journal.size(); ++taken_) add(world_.journal[taken_].second);
  }
  void later() {
    world_.pass(std::chrono::seconds(1));
    world_.see(core::HeartbeatHeard{.node = NodeName("n0"),
                                    .connection = ConnectionId(world_.connections)});
  }
  void run(const std::string& job, std::uint32_t attempt) {
    later();
    world_.started(job, attempt, "n0");
  }

  core::StagesWorld world_;
  std::vector<core::Event> events_;
  std::size_t taken_ = 0, before_loss_ = 0;
};

void copy_journal(const std::filesystem::path& from, const std::filesystem::path& to) {
  sql(from, "PRAGMA wal_checkpoint(TRUNCATE)");
  for (const char* file : {"journal.db", "head"})
    test::write_dump_file(to / file, read_all(from / file));
}

void write_history(const std::filesystem::path& dump) {
  const FrozenHistory history;
  const TempDir temporary, fold;
  const std::filesystem::path dir = temporary.path() / "journal";
  {
    const Opened opened = open_journal(dir);
    append(*opened.journal, history.before_loss());
    if (!opened.journal->archive(JobId("j0"))) throw std::runtime_error("archiving");
    append(*opened.journal, {submitted("lost", "lost"), ended("lost")});
    static_assert(kRowsLost == 2);
  }
  sql(dir, "DELETE FROM rows WHERE idx > (SELECT MAX(idx) - 2 FROM rows)");
  if (open_journal(dir, /*accept_loss=*/true).error) throw std::runtime_error("accepting the loss");
  copy_journal(dir, dump / "accepted");
  append(*open_journal(dir).journal, history.behind_loss());
  copy_journal(dir, dump / "history");
  copy_dir(dump / "history", fold.path() / "journal");
  test::write_dump_file(dump / "ledger.txt", core::dump(folded(fold.path() / "journal").ledger));
}

// What the history above is about; the rest is in ledger.txt.
void check_meaning(const core::Ledger& ledger) {
  EXPECT_EQ(ledger.lineage, (Lineage{.generation = 1, .id = "lineage-1"}));
  EXPECT_EQ(ledger.epoch, Epoch(2));
  ASSERT_TRUE(ledger.tombstones.contains(JobId("j0")));
  EXPECT_EQ(ledger.tombstones.at(JobId("j0")).phase, core::JobPhase::Succeeded);
  for (const char* job : {"j1", "k1", "k2"}) {
    ASSERT_TRUE(ledger.jobs.contains(JobId(job))) << job;
    EXPECT_EQ(ledger.jobs.at(JobId(job)).phase, core::JobPhase::Succeeded) << job;
  }
  const core::JobRecord& resumed = ledger.jobs.at(JobId("j1"));
  ASSERT_EQ(resumed.attempts.size(), 2u);
  const core::AttemptRecord& second = resumed.attempts.back();
  EXPECT_EQ(second.number, AttemptNo(4)) << "two numbers may have been used in the lost end";
  ASSERT_TRUE(second.resume);
  EXPECT_EQ(second.resume->step, 100);
  EXPECT_EQ(second.resume->attempt, AttemptNo(1));
}

// An older controller reads what this one writes, if it gets the journal back.
TEST(FrozenJournal, HeadAndMarkAreWrittenAsTheyWere) {
  for (const auto& dump : test::dumps_with("journal", kRows)) {
    SCOPED_TRACE(dump.native());
    const TempDir dir;
    const HeadContent head = *HeadFile::read(dump / "head");
    ASSERT_TRUE(std::holds_alternative<Head>(head));
    ASSERT_TRUE(HeadFile::create(dir.path() / "head", std::get<Head>(head)));
    const std::string slots = read_all(dump / "head"),
                      slot = read_all(dir.path() / "head").substr(512);
    ASSERT_EQ(slots.size(), 2 * slot.size());
    EXPECT_TRUE(slots.starts_with(slot) || slots.ends_with(slot)) << slot << slots;
    ASSERT_TRUE(HeadFile::mark_behind(dir.path() / "mark", kBehind.why, kBehind.generation));
    EXPECT_EQ(read_all(dir.path() / "mark"), read_all(dump / "mark"));
  }
}

TEST(FrozenJournal, MeansWhatItMeant) {
  const auto means = [](const std::filesystem::path& dump) {
    SCOPED_TRACE(dump.native());
    const TempDir dir;  // a test must not write into the checkout
    for (const char* name : {"history", "accepted"}) copy_dir(dump / name, dir.path() / name);
    EXPECT_EQ(generation_of(*HeadFile::read(dir.path() / "history/head")), 1u);
    const Folded history = folded(dir.path() / "history");
    EXPECT_FALSE(history.journal->lost());
    EXPECT_EQ(test::first_line_lost(read_all(dump / "ledger.txt"), core::dump(history.ledger)), "");
    check_meaning(history.ledger);

    EXPECT_EQ(generation_of(*HeadFile::read(dir.path() / "accepted/head")), 0u);
    const Folded accepted = folded(dir.path() / "accepted");
    ASSERT_TRUE(accepted.journal->lost());
    EXPECT_EQ(accepted.journal->lost()->rows, kRowsLost);
    EXPECT_EQ(accepted.journal->lost()->generation, 0u);
    EXPECT_EQ(accepted.ledger.epoch, Epoch(1));
    EXPECT_FALSE(accepted.ledger.jobs.contains(JobId("lost")));
  };
  auto found = test::dumps_with("journal", kHistory);
  if (found.empty() && test::writes_dumps()) {
    found.push_back(test::next_dump("journal", kHistory));
    write_history(found.back());
  }
  ASSERT_FALSE(found.empty()) << "run: " << test::how_to_write("unit_journal");
  for (const auto& dump : found) means(dump);
}

}  // namespace
}  // namespace muster::journal
