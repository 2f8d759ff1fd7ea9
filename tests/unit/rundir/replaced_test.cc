// A job replaces what is in its run directory: nothing is read or written through it, and what is
// not the agent's own is not believed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "common/io/file.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"
#include "common/rundir/run_file.h"
#include "common/rundir/wake_fifo.h"

namespace muster::rundir {
namespace {

namespace fs = std::filesystem;

class Replaced : public testing::Test {
 protected:
  Replaced() {
    std::string pattern = (fs::temp_directory_path() / "replaced.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    EXPECT_TRUE(make_run(run_ = RunLayout(dir_ / "runs/job.1")));
    fs::create_directories(dir_ / "outside/logs");
    launch_.set_version(kVersion);
    launch_.set_boot_id("b");
    claim_.set_boot_id("b");
    EXPECT_TRUE(write_launch(run_, launch_));
    EXPECT_TRUE(write_claim(run_, claim_));
    EXPECT_TRUE(write_lease(run_, BootTime(Duration(5)), BootId("b")));
    auto events = EventWriter::open(run_.events());
    EXPECT_TRUE(events && events->append(event()));
    auto marks = MarkWriter::open(run_.mark());
    EXPECT_TRUE(marks && marks->append(stamped_mark({.now = {}, .boot = BootId("b")})));
  }
  ~Replaced() override { fs::remove_all(dir_); }
  [[nodiscard]] static v1::Event event() { return stamped_event({.now = {}, .boot = BootId("b")}); }
  [[nodiscard]] bool outside_is_untouched() const {
    std::size_t names = 0;
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / "outside"))
      names += entry.path().filename() == "logs" ? 0 : 1;
    return names == 0;
  }
  // Whether the records are read; false: none is.
  [[nodiscard]] std::vector<bool> believed() const {
    const auto launch = read_launch(run_);
    const auto claim = read_claim(run_);
    const auto lease = read_lease(run_);
    EventReader events(run_.events());
    MarkReader marks(run_.mark());
    const auto some = events.read();
    const auto more = marks.read();
    return {launch && *launch, claim && *claim, lease && *lease, some && !some->empty(),
            more && !more->empty()};
  }

  fs::path dir_;
  RunLayout run_{""};
  v1::Launch launch_;
  v1::Claim claim_;
};

const std::vector<bool> kAll(5, true), kNone(5, false);

TEST_F(Replaced, OwnRecordsAreBelieved) { EXPECT_EQ(believed(), kAll); }

TEST_F(Replaced, ALinkInThePlaceOfTheRunDirectoryIsNotFollowed) {
  // with sound records behind it
  fs::rename(run_.root(), dir_ / "away");
  fs::create_directory_symlink(dir_ / "away", run_.root());
  EXPECT_EQ(believed(), kNone);
  EXPECT_EQ(read_launch(run_).error().code, ErrorCode::DataLoss);
  EventReader events(run_.events());
  ASSERT_TRUE(events.read());
  EXPECT_TRUE(events.damaged());
  EXPECT_EQ(events.wrong(), "opening '" + run_.root().string() + "': a link is in its place");
  fs::remove(run_.root());
  fs::create_directory_symlink(dir_ / "outside", run_.root());
  EXPECT_FALSE(make_run(run_));
  EXPECT_FALSE(write_launch(run_, launch_));
  EXPECT_FALSE(write_claim(run_, claim_));
  EXPECT_FALSE(write_lease(run_, BootTime(Duration(5)), BootId("b")));
  EXPECT_FALSE(EventWriter::open(run_.events()));
  EXPECT_FALSE(MarkWriter::open(run_.mark()));
  EXPECT_FALSE(WakeFifo::open(run_));
  EXPECT_FALSE(open_file(run_.worker_log(), O_WRONLY | O_CREAT, 0600));
  EXPECT_TRUE(outside_is_untouched());
}

// Links, pipes and directories in the place of each record.
TEST_F(Replaced, NoRecordIsReadThroughWhatIsNoFile) {
  const auto records = {run_.launch(), run_.claim(), run_.lease(), run_.events(), run_.mark()};
  const std::vector<std::function<void(const fs::path&)>> put = {
      [&](const fs::path& record) {
        fs::rename(record, dir_ / "sound");
        fs::create_symlink(dir_ / "sound", record);
      },
      [](const fs::path& record) {
        fs::remove(record);
        ASSERT_EQ(::mkfifo(record.c_str(), 0600), 0);
      },
      [](const fs::path& record) {
        fs::remove(record);
        fs::create_directories(record);
      }};
  for (const auto& replace : put) {
    for (const fs::path& record : records) replace(record);
    EXPECT_EQ(believed(), kNone);
    for (const fs::path& record : records) fs::remove_all(record);
    ASSERT_TRUE(write_launch(run_, launch_));
    ASSERT_TRUE(*write_claim(run_, claim_));
    ASSERT_TRUE(write_lease(run_, BootTime(Duration(5)), BootId("b")));
    ASSERT_TRUE(EventWriter::open(run_.events())->append(event()));
    ASSERT_TRUE(
        MarkWriter::open(run_.mark())->append(stamped_mark({.now = {}, .boot = BootId("b")})));
  }
  EXPECT_EQ(believed(), kAll);
}

TEST_F(Replaced, ARecordOfAnotherUserIsNotBelievedAndTheSentenceNamesHim) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away; this is user " << ::geteuid();
  for (const auto& record : {run_.launch(), run_.claim(), run_.lease(), run_.events(), run_.mark()})
    ASSERT_EQ(::chown(record.c_str(), 65534, 65534), 0);
  EXPECT_EQ(believed(), kNone);
  const auto launch = read_launch(run_);
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().message,
            "reading '" + run_.launch().string() +
                "': it belongs to user 65534, and this process is of user 0; it is not believed");
  MarkReader marks(run_.mark());
  ASSERT_TRUE(marks.read());
  EXPECT_TRUE(marks.damaged());
  EXPECT_NE(marks.wrong().find("it belongs to user 65534"), std::string::npos) << marks.wrong();
  EXPECT_FALSE(MarkWriter::open(run_.mark())) << "and it is not written";
  EXPECT_FALSE(*write_claim(run_, claim_)) << "the claim is taken all the same";
}

TEST_F(Replaced, ThatOthersMayWriteIsNotBelieved) {
  for (const auto& record : {run_.launch(), run_.claim(), run_.lease(), run_.events(), run_.mark()})
    fs::permissions(record, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(believed(), kNone);
}

TEST_F(Replaced, FilesOfTheRunAreOpenedAsFilesOrNotAtAll) {
  std::ofstream(dir_ / "outside/canary") << "canary";
  const auto log = run_.setup_log();
  std::ofstream(log) << "log";
  EXPECT_EQ(*read_file(log, 100), "log");
  EXPECT_TRUE(open_file(log, O_RDONLY));
  const auto refused = [&] {
    const bool opened = open_file(log, O_WRONLY | O_CREAT | O_APPEND, 0600).get() >= 0;
    const bool was_read = read_file(log, 100).has_value();
    return !opened && !was_read;
  };
  fs::remove(log);
  fs::create_symlink(dir_ / "outside/canary", log);
  EXPECT_TRUE(refused());
  fs::remove(log);
  ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
  EXPECT_TRUE(refused());
  fs::remove(log);
  fs::create_directories(log);
  EXPECT_TRUE(refused());
  fs::remove_all(run_.logs());
  std::ofstream(dir_ / "outside/logs/setup.log") << "canary";
  fs::create_directory_symlink(dir_ / "outside/logs", run_.logs());
  EXPECT_TRUE(refused());
  fs::remove(run_.logs());
  fs::rename(run_.root(), dir_ / "away");
  fs::create_directory_symlink(dir_ / "outside", run_.root());
  EXPECT_TRUE(refused());
  EXPECT_EQ(*io::read_file(dir_ / "outside/logs/setup.log", 100), "canary");
  EXPECT_EQ(*io::read_file(dir_ / "outside/canary", 100), "canary");
}

}  // namespace
}  // namespace muster::rundir
