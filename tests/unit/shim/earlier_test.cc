// Regression: "Train with --save ./ckpt, then continue with --load ./ckpt": the first directory had
// been redirected, so the second training found nothing, and silently began with random weights.
#include "worker/shim/earlier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/io/file.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class EarlierJobs : public testing::Test {
 protected:
  EarlierJobs() {
    std::string pattern = (fs::canonical(fs::temp_directory_path()) / "earlier.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    fs::create_directories(dir_ / "code");
    for (const char* step : {"iter_0000010", "iter_0000020"})
      fs::create_directories(dir_ / "saved" / step);
    before_ = fs::current_path();
    fs::current_path(dir_ / "code");
  }
  ~EarlierJobs() override {
    fs::current_path(before_);
    fs::remove_all(dir_);
  }
  [[nodiscard]] std::string line(const std::string& step, const std::string& path) const {
    return (dir_ / "code/ckpt").string() + "\tj1\t" + step + "\t" + path + "\n";
  }
  [[nodiscard]] std::string lines() const {
    return line("10", (dir_ / "saved/iter_0000010").string()) +
           line("20", (dir_ / "saved/iter_0000020").string());
  }
  [[nodiscard]] Result<LoadAnswer> answer(const ScriptOptions& given,
                                          const std::string& lines) const {
    return answer_load(given, lines, (dir_ / "links").string());
  }
  // In every branch: the earlier job has checkpoints or none, and the script saves nothing, saves
  // elsewhere, or saves where it loads.
  void expect_load_stays(const std::string& reason) const {
    for (const char* save : {"", "./other", "ckpt"}) {
      const ScriptOptions given{.save = save, .weights_alone = false, .load = "./ckpt"};
      const auto found = answer(given, lines()), none = answer(given, line("0", ""));
      ASSERT_TRUE(found) << "--save " << save << ": " << found.error().message;
      EXPECT_THAT(found->dir, IsEmpty()) << "--save " << save;
      EXPECT_THAT(found->notice,
                  AllOf(HasSubstr("--load ./ckpt: job j1 would have saved there, and saved in a "
                                  "directory of its own; --load stays as it is: "),
                        HasSubstr(reason),
                        HasSubstr("; to go on from that job's checkpoints write start: {from: "
                                  "'job:j1', as: resume}")))
          << "--save " << save;
      ASSERT_TRUE(none) << "--save " << save << ": " << none.error().message;
      EXPECT_THAT(none->dir, IsEmpty()) << "--save " << save;
      EXPECT_THAT(none->notice, AllOf(HasSubstr("--load stays as it is: "), HasSubstr(reason),
                                      HasSubstr("; that job has no whole checkpoint")))
          << "--save " << save;
    }
    EXPECT_FALSE(fs::exists(dir_ / "links"));
  }
  fs::path dir_, before_;
};

TEST_F(EarlierJobs, AreAnsweredWithLinksToWhatTheyHaveSaved) {
  for (const char* given : {"./ckpt", "ckpt/", "../code/ckpt"}) {
    const auto found = answer({.save = "", .weights_alone = false, .load = given}, lines());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->dir, (dir_ / "links/j1").string()) << given;
    EXPECT_THAT(found->notice, HasSubstr("job j1 would have saved there"));
    EXPECT_THAT(found->notice, HasSubstr("(step 20, 10)"));
  }
  EXPECT_EQ(fs::read_symlink(dir_ / "links/j1/iter_0000020"), dir_ / "saved/iter_0000020");
  EXPECT_EQ(io::read_file(dir_ / "links/j1/latest_checkpointed_iteration.txt", 100).value_or(""),
            "20");
  EXPECT_FALSE(fs::exists(dir_ / "code/ckpt")) << "nothing is put into the user's tree";
}

TEST_F(EarlierJobs, AnotherDirectoryIsTheScriptsOwn) {
  for (const char* given : {"", "/data/weights", "./ckpt2"}) {
    const auto found = answer({.save = "./ckpt", .weights_alone = false, .load = given}, lines());
    ASSERT_TRUE(found);
    EXPECT_THAT(found->dir, IsEmpty()) << given;
  }
  EXPECT_THAT(answer({.load = "./ckpt"}, "")->dir, IsEmpty());
  EXPECT_THAT(answer({.load = "./ckpt"}, "\n\t\t\t\nx\ty\tz\tw\n")->dir, IsEmpty()) << "any bytes";
}

// Two jobs with one code directory, whose scripts save where they load, as the engines' own
// examples do.
TEST_F(EarlierJobs, WhoSavesWhereItLoadsIsWarnedAndBeginsWithoutThem) {
  const auto own = answer({.save = "ckpt", .weights_alone = false, .load = "./ckpt"}, lines());
  ASSERT_TRUE(own);
  EXPECT_THAT(own->dir, IsEmpty());
  EXPECT_THAT(own->notice, HasSubstr("it begins without that job's; to go on from them write "
                                     "start: {from: 'job:j1', as: resume}"));
  EXPECT_FALSE(fs::exists(dir_ / "links"));
}

TEST_F(EarlierJobs, WithoutACheckpointTheLaunchStops) {
  const auto none =
      answer({.save = "./other", .weights_alone = false, .load = "./ckpt"}, line("0", ""));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("job j1 would have saved there, and saved in a "
                                              "directory of its own; it has no whole checkpoint"));
  const auto begins =
      answer({.save = "ckpt", .weights_alone = false, .load = "./ckpt"}, line("0", ""));
  ASSERT_TRUE(begins) << "a script that saves where it loads begins anew where nothing is";
  EXPECT_THAT(begins->dir, IsEmpty());
}

// Regression: nobody checked what --load itself names. The user's own checkpoints in ./ckpt were
// ignored, and another job's weights were loaded. If that job had failed before its first
// checkpoint, the launch was refused.
TEST_F(EarlierJobs, ATrackerInTheDirectoryItselfIsNotReplaced) {
  fs::create_directories(dir_ / "code/ckpt");
  std::ofstream(dir_ / "code/ckpt/latest_checkpointed_iteration.txt") << "500";
  expect_load_stays("the files in '" + (dir_ / "code/ckpt").string() +
                    "' itself are loaded, as its latest_checkpointed_iteration.txt says");
}

TEST_F(EarlierJobs, ACheckpointInTheDirectoryItselfIsNotReplaced) {
  for (const char* name : {"iter_0000500", "iter_12345678", "release"}) {
    fs::create_directories(dir_ / "code/ckpt" / name);
    expect_load_stays("the files in '" + (dir_ / "code/ckpt").string() + "' itself are loaded ('" +
                      name +
                      "'), where the program finds them without a "
                      "latest_checkpointed_iteration.txt");
    fs::remove_all(dir_ / "code/ckpt");
  }
}

TEST_F(EarlierJobs, TheDirectoryMayBeALink) {
  fs::create_directories(dir_ / "disk");
  fs::create_directory_symlink(dir_ / "disk", dir_ / "code/ckpt");
  const std::string saved =
      (dir_ / "disk").string() + "\tj1\t10\t" + (dir_ / "saved/iter_0000010").string() + "\n";
  const ScriptOptions given{.save = "", .weights_alone = false, .load = "./ckpt"};
  const auto empty = answer(given, saved);
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->dir, (dir_ / "links/j1").string());
  // A checkpoint may be a link, too.
  fs::create_directory_symlink(dir_ / "saved/iter_0000020", dir_ / "disk/iter_0000020");
  const auto found = answer(given, saved);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->dir, IsEmpty());
  EXPECT_THAT(found->notice, HasSubstr("('iter_0000020')"));
}

TEST_F(EarlierJobs, ADirectoryWithoutACheckpointIsAnsweredAsBefore) {
  // Megatron writes none of these names as the directory of a checkpoint.
  for (const char* name : {"tensorboard", "iter_500", "iter_", "iter_0000500x"})
    fs::create_directories(dir_ / "code/ckpt" / name);
  std::ofstream(dir_ / "code/ckpt/iter_0000500") << "a file";
  const ScriptOptions given{.save = "./other", .weights_alone = false, .load = "./ckpt"};
  const auto found = answer(given, lines());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->dir, (dir_ / "links/j1").string());
  const auto none = answer(given, line("0", ""));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("it has no whole checkpoint to begin with"));
}

TEST_F(EarlierJobs, AnEmptyDirectoryIsAnsweredAsBefore) {
  fs::create_directories(dir_ / "code/ckpt");
  const ScriptOptions given{.save = "./other", .weights_alone = false, .load = "./ckpt"};
  const auto found = answer(given, lines());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->dir, (dir_ / "links/j1").string());
  EXPECT_FALSE(answer(given, line("0", "")));
}

TEST_F(EarlierJobs, WhatIsNoDirectoryIsLeftToTheProgram) {
  std::ofstream(dir_ / "code/ckpt") << "weights";
  expect_load_stays("'" + (dir_ / "code/ckpt").string() + "' is no directory");
}

// A link to itself: nobody can read it, root included.
TEST_F(EarlierJobs, WhatCannotBeReadIsLeftToTheProgram) {
  fs::create_symlink("ckpt", dir_ / "code/ckpt");
  expect_load_stays("'" + (dir_ / "code/ckpt").string() + "' cannot be read on this node (");
}

TEST_F(EarlierJobs, WhatIsNotOnThisNodeIsReported) {
  const auto gone = answer({.save = "", .weights_alone = false, .load = "ckpt"},
                           line("30", (dir_ / "saved/iter_0000030").string()));
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr("iter_0000030' is not there on this node"));
}

}  // namespace
}  // namespace muster::shim
