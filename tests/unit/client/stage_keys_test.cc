#include "client/commands/chain/stage_keys.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "common/spec/parse.h"
#include "tests/support/dumps.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class StageKeys : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "muster-stage-keys-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    fs::create_directories(dir_ / "data/sub");
    write("data/one", "1");
    write("data/sub/two", "2");
    write("prepare.py", "print()");
    write("train.py", "pass");
    write("a.yaml", "a: 1");
  }
  void TearDown() override { fs::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }

  std::vector<v1::JobSpec> stages(const std::string& more = "") const {
    return stages_in(dir_.string(), more);
  }
  static std::vector<v1::JobSpec> stages_in(const std::string& dir, const std::string& more) {
    spec::Parsed parsed = spec::parse_yaml(
        "name: c\nengine: torch\nlaunch: {script: train.py, args: --config a.yaml, patch: {a.yaml: "
        "{a: 2}}}\n" +
            more +
            "stages:\n"
            "  prepare: {engine: command, launch: {run: python3 prepare.py, patch: null}, inputs: "
            "{raw: data}, creates: tokens}\n"
            "  train: {creates: model, inputs: {tokens: 'stage:prepare/tokens'}}\n"
            "  eval: {}\n",
        {.base_dir = dir});
    EXPECT_EQ(spec::format(parsed.problems, "x"), "");
    return std::move(parsed.stages);
  }

  // The keys of `prepare` and `train`.
  std::pair<std::string, std::string> keys(const std::string& more = "") const {
    std::vector<v1::JobSpec> found = stages(more);
    EXPECT_THAT(set_stage_keys(found, [this](const std::string& job) { return job + job_id_; }),
                IsEmpty());
    EXPECT_EQ(found[2].stage().key(), "") << "a stage that creates nothing is never taken for done";
    return {found[0].stage().key(), found[1].stage().key()};
  }

  fs::path dir_;
  std::string job_id_ = "-1";
};

// The controller compares the keys that clients of different releases compute. A key that changes
// makes every finished stage run again (docs/compatibility.md).
class FrozenStageKeys : public StageKeys {
 protected:
  void SetUp() override {
    StageKeys::SetUp();
    for (const auto& entry : fs::recursive_directory_iterator(dir_)) {
      const std::array<timespec, 2> times{
          {{.tv_sec = 1'800'000'000, .tv_nsec = 5}, {.tv_sec = 1'800'000'001, .tv_nsec = 7}}};
      ASSERT_EQ(::utimensat(AT_FDCWD, entry.path().c_str(), times.data(), 0), 0);
    }
  }
  // Keys have absolute paths, so the files are reached by one that is always the same.
  [[nodiscard]] std::string keys_text() const {
    const fs::path before = fs::current_path();
    fs::current_path(dir_);
    std::vector<v1::JobSpec> found =
        stages_in("/proc/self/cwd", "inputs: {more: 'job:earlier/x'}\n");
    EXPECT_THAT(set_stage_keys(found, [](const std::string& job) { return "id-of-" + job; }),
                IsEmpty());
    fs::current_path(before);
    std::string text;
    for (const v1::JobSpec& stage : found)
      if (!stage.stage().creates().empty())
        text += stage.stage().name() + " " + stage.stage().key() + "\n";
    return text;
  }
};

TEST_F(FrozenStageKeys, AreThoseOfVersion1) {
  const test::DumpFiles files = {"keys.txt"};
  const std::string today = keys_text();
  EXPECT_EQ(today.size(), std::string("prepare \ntrain \n").size() + 2 * 64) << today;
  auto found = test::dumps_with("stages", files);
  if (found.empty() && test::writes_dumps()) {
    found.push_back(test::next_dump("stages", files));
    test::write_dump_file(found.back() / "keys.txt", today);
  }
  ASSERT_EQ(found.size(), 1u) << "run: " << test::how_to_write("unit_client");
  EXPECT_EQ(test::read_dump(found.front() / "keys.txt"), today);
}

TEST_F(StageKeys, AreTheSameOfTheSame) {
  const auto before = keys();
  EXPECT_EQ(before.first.size(), 64u);
  EXPECT_NE(before.first, before.second);
  EXPECT_EQ(keys(), before);
  EXPECT_EQ(keys("description: other words\nlabels: {a: b}\nrecovery: {max_restarts: 3}\n"), before)
      << "nothing that changes what is made";
}

TEST_F(StageKeys, ChangeWithWhatAStageIsMadeFrom) {
  auto last = keys();
  const auto changed = [&](const char* what, bool first, bool second,
                           const std::function<void()>& change) {
    change();
    const auto now = keys();
    EXPECT_EQ(now.first != last.first, first) << what;
    EXPECT_EQ(now.second != last.second, second) << what;
    last = now;
  };
  changed("a file below an input", true, true, [&] { write("data/sub/two", "22"); });
  changed("a time alone", true, true, [&] {
    fs::last_write_time(dir_ / "data/one",
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  });
  changed("a new file", true, true, [&] { write("data/three", ""); });
  changed("a file that is gone", true, true, [&] { fs::remove(dir_ / "data/one"); });
  changed("a script in launch.run", true, true, [&] { write("prepare.py", "print(1)"); });
  changed("launch.script", false, true, [&] { write("train.py", "pass # more"); });
  changed("a file of launch.patch", false, true, [&] { write("a.yaml", "a: 111"); });
  changed("a file that nothing names", false, false, [&] { write("other.py", "x"); });
  changed("an input that is gone", true, true, [&] { fs::remove_all(dir_ / "data"); });
  EXPECT_NE(keys("runtime: {env: {A: b}}\n"), last);
  const std::string of_a_job = "inputs: {more: 'job:earlier/x'}\n";
  const auto before = keys(of_a_job);
  EXPECT_EQ(keys(of_a_job), before);
  job_id_ = "-2";
  EXPECT_NE(keys(of_a_job), before) << "another job of the name";
}

TEST_F(StageKeys, AreNotThereWhereTheFilesAreTooMany) {
  std::vector<v1::JobSpec> found = stages();
  EXPECT_THAT(set_stage_keys(found, {}, 2),
              ElementsAre("stage 'prepare' takes from more than 2 files: whether they have changed "
                          "is not checked, and it runs"));
  EXPECT_EQ(found[0].stage().key(), "");
  EXPECT_EQ(found[1].stage().key(), "") << "what it stands on cannot be told";
}

TEST_F(StageKeys, NameWhatAStageComesBehind) {
  const std::vector<v1::JobSpec> found = stages();
  EXPECT_THAT(stages_named(found[0]), IsEmpty());
  EXPECT_THAT(stages_named(found[1]), ElementsAre("prepare"));
}

TEST_F(StageKeys, MissingPathsAreReported) {
  const std::vector<v1::JobSpec> found =
      stages("start: {from: /nowhere/at/all}\nruntime: {env: {D: '${start.dir}'}}\n");
  EXPECT_THAT(missing_paths(found[0]), ElementsAre("start.from: '/nowhere/at/all'"));
  fs::remove_all(dir_ / "data");
  EXPECT_THAT(missing_paths(found[0]), ElementsAre("inputs.raw: '" + (dir_ / "data").string() + "'",
                                                   "start.from: '/nowhere/at/all'"));
}

}  // namespace
}  // namespace muster::client
