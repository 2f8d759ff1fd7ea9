// `muster-controller --dump`: the ledger of a journal; nothing on the disk changes.
#include "controller/dump.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <map>

#include "controller/journal/sqlite_journal.h"

namespace muster::controller {
namespace {

class DumpTest : public testing::Test {
 protected:
  DumpTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-dump-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    auto journal = journal::SqliteJournal::open(
        {.dir = dir_ / "journal", .ballast_bytes = 1 << 20, .low_space_bytes = 0});
    EXPECT_TRUE(journal);
    EXPECT_TRUE((*journal)->load([](const journal::Row&) {}));
    const JobId job("0000000000001");
    v1::JobSpec spec;
    spec.set_name("train");
    std::vector<journal::Row> rows;
    for (core::EventBody body :
         {core::EventBody(core::ControllerStarted{
              .epoch = Epoch(1), .cluster = ClusterId("c"), .version = "test"}),
          core::EventBody(core::JobSubmitted{.job = job, .spec = spec, .spec_hash = "h"}),
          core::EventBody(core::CaughtUp{.job = job, .attempt = AttemptNo(4)})}) {
      rows.push_back({.index = JournalIndex(rows.size() + 1),
                      .event = {.at = WallTime(std::chrono::seconds(1)), .body = std::move(body)}});
    }
    EXPECT_TRUE((*journal)->append(rows));
  }
  ~DumpTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> files() const {
    std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_)) {
      std::string content;
      if (entry.is_regular_file()) {
        std::ifstream in(entry.path(), std::ios::binary);
        content.assign(std::istreambuf_iterator<char>(in), {});
      }
      found[entry.path().native()] = {content, entry.last_write_time()};
    }
    return found;
  }
  std::filesystem::path dir_;
};

TEST_F(DumpTest, ShowsTheLedgerAndWhatMakesNoSense) {
  const auto text = dump_journal(dir_);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(
      text->starts_with("unreadable: job '0000000000001': journal row 3 makes no sense: attempt 4 "
                        "was never placed\n"))
      << *text;
  EXPECT_NE(text->find("job 0000000000001 name=train"), std::string::npos) << *text;
}

TEST_F(DumpTest, ChangesNothing) {
  const auto before = files();
  ASSERT_TRUE(before.contains((dir_ / "journal" / "ballast").native()));
  ASSERT_TRUE(dump_journal(dir_));
  EXPECT_TRUE(files() == before);
}

TEST_F(DumpTest, OfADirectoryWithoutAJournalIsAnError) {
  const auto text = dump_journal(dir_ / "elsewhere");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::NotFound);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "elsewhere"));
}

}  // namespace
}  // namespace muster::controller
