// Outputs are copied by a real rclone into a directory that plays the store.
#include "agent/outputs/upload_outputs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "agent/outputs/stored_checkpoint.h"
#include "agent/outputs/upload_checkpoint.h"
#include "common/digest/sha256.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}

class UploadOutputs : public testing::Test {
 protected:
  UploadOutputs() {
    std::string pattern = (fs::temp_directory_path() / "muster-upload-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    fs::create_directories(out());
    fs::create_directories(store());
  }
  ~UploadOutputs() override { fs::remove_all(dir_); }

  [[nodiscard]] fs::path out() const { return dir_ / "out"; }
  [[nodiscard]] fs::path store() const { return dir_ / "store"; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((out() / name).parent_path());
    std::ofstream(out() / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::vector<std::string> listed(std::vector<std::string> include = {}) const {
    const auto wanted = store::Selection::make(include);
    std::string unread;
    const auto files = list_outputs(out(), *wanted, nullptr, unread);
    std::vector<std::string> names;
    for (const auto& [name, state] : files.value_or(SentFiles())) names.push_back(name);
    return names;
  }
  v1::OutputUpload order() const {
    v1::OutputUpload order;
    order.set_url("dir://d/runs/7");
    order.set_dir(out());
    order.mutable_profile()->set_url("dir://d");
    order.mutable_profile()->set_endpoint(store());
    order.set_has_others(has_others_);
    order.set_node(node_);
    *order.mutable_include() = {include_.begin(), include_.end()};
    return order;
  }
  template <class Send>
  Uploaded with_work(Send&& send) {
    const v1::OutputUpload order = this->order();
    return send({.upload = order,
                 .key = key_,
                 .owner = nullptr,
                 .job = "j",
                 .sent = dir_ / "state" / "sent",
                 .rate_limit = 0,
                 .abandoned = abandoned_,
                 .away_most = std::chrono::milliseconds(1)});
  }
  Uploaded upload() {
    return with_work([this](const UploadWork& work) {
      return upload_outputs(
          work, {.layout = "megatron", .dir = work.upload.dir() + "/checkpoints", .kept = kept_});
    });
  }
  [[nodiscard]] std::string there(const std::string& name) const {
    return text_of(store() / "runs/7" / name);
  }
  // A whole checkpoint in Megatron's format torch_dist, as far as files matter here.
  void save(std::int64_t step, const std::string& text) const {
    const std::string dir = fmt::format("checkpoints/attempt-1/iter_{:07}", step);
    write(dir + "/metadata.json", "{}");
    write(dir + "/__0_0.distcp", text);
  }
  [[nodiscard]] CheckpointPlace place(std::int64_t step) const {
    return {.out = out(),
            .save_dir = out() / "checkpoints/attempt-1",
            .layout = "megatron",
            .run = {JobId("j"), AttemptNo(1)},
            .step = step,
            .records = dir_ / "frozen"};
  }
  Uploaded upload_step(std::int64_t step) {
    const auto files = freeze_checkpoint(place(step), nullptr);
    if (!files) return {.files = 0, .bytes = 0, .problem = files.error().message};
    return with_work(
        [&](const UploadWork& work) { return upload_checkpoint(work, place(step), *files); });
  }
  Uploaded seal(std::int64_t step, const std::vector<NodeSums>& sums = {}) {
    return with_work([&](const UploadWork& work) { return upload_seal(work, place(step), sums); });
  }
  // From now on two writes have different times.
  void let_time_pass() const {
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (const auto& one : fs::recursive_directory_iterator(out()))
      if (one.is_regular_file()) fs::last_write_time(one, old);
  }

  fs::path dir_;
  Abandoned abandoned_;
  std::vector<std::string> include_;
  std::string key_;
  std::string node_ = "n1";
  bool has_others_ = false;
  std::set<std::pair<std::string, std::int64_t>> kept_;
};

TEST_F(UploadOutputs, TheFilesOfTheJobAreListedAndNothingElse) {
  write("b", "1");
  write("a/x y.ckpt", "22");
  write("code/train.py", "no output");
  write("a/code/kept.py", "an output");
  fs::create_symlink("/etc/passwd", out() / "link");
  fs::create_directory_symlink("/etc", out() / "linked");
  EXPECT_THAT(listed(), ElementsAre("a/code/kept.py", "a/x y.ckpt", "b"));
  EXPECT_THAT(listed({"*.ckpt"}), ElementsAre("a/x y.ckpt"));
  fs::remove_all(out());
  EXPECT_TRUE(listed().empty()) << "the job has written nothing";
}

TEST_F(UploadOutputs, AllOfThemAreThereAfterwards) {
  write("checkpoints/attempt-1/é 100%.ckpt", "weights");
  write("zero", "");
  const Uploaded uploaded = upload();
  EXPECT_EQ(uploaded.problem, "");
  EXPECT_EQ(uploaded.files, 2U);
  EXPECT_EQ(uploaded.bytes, 7U);
  EXPECT_EQ(text_of(store() / "runs/7/checkpoints/attempt-1/é 100%.ckpt"), "weights");
  EXPECT_TRUE(fs::exists(store() / "runs/7/zero"));
  write("zero", "more");
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(text_of(store() / "runs/7/zero"), "more");
}

TEST_F(UploadOutputs, WhatCannotBeNamedIsLeftOutAndCounted) {
  write("a", "1");
  write("picture \u2409", "2");
  write("quote \u201B", "3");
  const Uploaded uploaded = upload();
  EXPECT_EQ(uploaded.files, 1U);
  EXPECT_THAT(uploaded.problem, HasSubstr("2 files are left out"));
  EXPECT_TRUE(fs::exists(store() / "runs/7/a"));
}

TEST_F(UploadOutputs, NamesMayHaveAnyBytes) {
  const std::vector<std::string> names = {
      "new\nline", "cr\r",  "tab\t",    "\x01", "\x1F", "\x7F",  " lead", "trail ", "back\\slash",
      "#hash",     ";semi", "\xFF.bin", "é",    "dot.", "-dash", "{a,b}", "\u2423", "*?:%"};
  for (const std::string& name : names) write(name, name);
  const Uploaded uploaded = upload();
  EXPECT_EQ(uploaded.problem, "");
  EXPECT_EQ(uploaded.files, names.size());
  for (const std::string& name : names) EXPECT_EQ(there(name), name);
  const SentFiles sent = read_sent(dir_ / "state" / "sent", "dir://d/runs/7");
  EXPECT_EQ(sent.size(), names.size());
  for (const std::string& name : names) EXPECT_TRUE(sent.contains(name)) << name;
}

TEST_F(UploadOutputs, AStoreThatTakesNothingIsASentence) {
  write("a", "1");
  fs::remove_all(store());
  std::ofstream(store()) << "a file, and no directory";
  const Uploaded uploaded = upload();
  EXPECT_EQ(uploaded.files, 0U);
  EXPECT_THAT(uploaded.problem, HasSubstr("rclone: "));
}

TEST_F(UploadOutputs, WhatWasSentIsNotSentAgain) {
  write("a", "1");
  write("b", "22");
  let_time_pass();
  EXPECT_EQ(upload().problem, "");
  std::ofstream(store() / "runs/7/a") << "X";
  fs::remove(store() / "runs/7/b");
  write("c", "333");
  const Uploaded uploaded = upload();
  EXPECT_EQ(uploaded.problem, "");
  EXPECT_EQ(uploaded.files, 3U);
  EXPECT_EQ(there("a"), "X") << "it has the size of what was sent";
  EXPECT_EQ(there("b"), "22") << "what is not there is sent";
  EXPECT_EQ(there("c"), "333");
}

TEST_F(UploadOutputs, AFileOfTheSameSizeWithOtherBytesIsSent) {
  write("a", "1");
  let_time_pass();
  EXPECT_EQ(upload().problem, "");
  const auto time = fs::last_write_time(out() / "a");
  write("a", "2");
  fs::last_write_time(out() / "a", time);
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(there("a"), "2");
}

TEST_F(UploadOutputs, WhatWasSentToAnotherPlaceIsSentHere) {
  write("a", "1");
  let_time_pass();
  EXPECT_EQ(upload().problem, "");
  const SentFiles sent = read_sent(dir_ / "state" / "sent", "dir://d/runs/7");
  ASSERT_THAT(sent, testing::SizeIs(1));
  EXPECT_TRUE(read_sent(dir_ / "state" / "sent", "dir://d/runs/8").empty());
  std::ofstream(dir_ / "state" / "sent", std::ios::app) << "1 2 3";
  EXPECT_TRUE(read_sent(dir_ / "state" / "sent", "dir://d/runs/7").empty()) << "cut";
}

TEST_F(UploadOutputs, AFileThatCannotBeReadStopsNoOther) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  write("a", "1");
  write("b", "2");
  fs::permissions(out() / "a", fs::perms::none);
  const Uploaded uploaded = upload();
  EXPECT_THAT(uploaded.problem, HasSubstr("permission denied"));
  EXPECT_EQ(there("b"), "2");
}

TEST_F(UploadOutputs, ACheckpointThatIsDeletedMeanwhileIsUploadedWhole) {
  save(100, "weights");
  let_time_pass();
  const auto files = freeze_checkpoint(place(100), nullptr);
  ASSERT_TRUE(files) << files.error().message;
  fs::remove_all(out() / "checkpoints/attempt-1/iter_0000100");
  const Uploaded uploaded = with_work(
      [&](const UploadWork& work) { return upload_checkpoint(work, place(100), *files); });
  EXPECT_EQ(uploaded.problem, "");
  EXPECT_EQ(uploaded.files, 2U);
  EXPECT_EQ(there("checkpoints/attempt-1/iter_0000100/__0_0.distcp"), "weights");
}

TEST_F(UploadOutputs, TheMarkOfACheckpointSaysItsStep) {
  save(100, "weights");
  write("checkpoints/attempt-1/latest_checkpointed_iteration.txt", "200");
  EXPECT_EQ(upload_step(100).problem, "");
  EXPECT_FALSE(
      fs::exists(store() / "runs/7/checkpoints/attempt-1/latest_checkpointed_iteration.txt"));
  EXPECT_EQ(seal(100).problem, "");
  EXPECT_EQ(there("checkpoints/attempt-1/latest_checkpointed_iteration.txt"), "100");
  EXPECT_EQ(text_of(out() / "checkpoints/attempt-1/latest_checkpointed_iteration.txt"), "200");
}

// As `sha256sum --check` in this directory; the integration tests have that one itself.
bool are_true(const fs::path& dir, const std::string& list) {
  const auto sums = store::parse_sums(text_of(dir / list));
  return sums && !sums->empty() && std::ranges::all_of(*sums, [&](const auto& one) {
           return sha256_hex(text_of(dir / one.first)) == one.second;
         });
}

TEST_F(UploadOutputs, ACheckpointHasAListOfItsSums) {
  save(100, "weights");
  write("checkpoints/attempt-1/iter_0000100/new\nline \\ é", "odd");
  const Uploaded sent = upload_step(100);
  EXPECT_EQ(sent.problem, "");
  EXPECT_EQ(sent.files, 3U) << "the list is none of its files";
  EXPECT_EQ(sent.sums_sha256.size(), 64U);
  const fs::path saves = store() / "runs/7/checkpoints/attempt-1";
  EXPECT_TRUE(are_true(saves, ".muster/step-100/n1.sha256"));
  EXPECT_FALSE(fs::exists(saves / ".muster/step-100.sha256")) << "it is not sealed yet";
  EXPECT_EQ(seal(100, {{.node = "n1", .sha256 = sent.sums_sha256}}).problem, "");
  EXPECT_TRUE(are_true(saves, ".muster/step-100.sha256"));
  EXPECT_EQ(there("checkpoints/attempt-1/latest_checkpointed_iteration.txt"), "100");
  write("checkpoints/attempt-1/iter_0000100/__0_0.distcp", "WEIGHTS");
  fs::copy_file(out() / "checkpoints/attempt-1/iter_0000100/__0_0.distcp",
                saves / "iter_0000100/__0_0.distcp", fs::copy_options::overwrite_existing);
  EXPECT_FALSE(are_true(saves, ".muster/step-100/n1.sha256"));
  EXPECT_FALSE(fs::exists(dir_ / "state/sent.texts"));
}

TEST_F(UploadOutputs, WithoutAListOfEachNodeThereIsTheMarkAlone) {
  node_.clear();  // the controller is of an earlier release
  save(100, "weights");
  const Uploaded sent = upload_step(100);
  EXPECT_EQ(sent.problem, "");
  EXPECT_EQ(sent.sums_sha256, "");
  EXPECT_EQ(seal(100).problem, "");
  EXPECT_EQ(there("checkpoints/attempt-1/latest_checkpointed_iteration.txt"), "100");
  EXPECT_FALSE(fs::exists(store() / "runs/7/checkpoints/attempt-1/.muster"));
}

TEST_F(UploadOutputs, AllThatIsUploadedInTheEndHasASum) {
  save(100, "weights");
  let_time_pass();
  EXPECT_EQ(upload_step(100).problem, "");
  write("logs/events", "more");
  EXPECT_EQ(upload().problem, "");
  EXPECT_TRUE(are_true(store() / "runs/7", ".muster/j/n1.sha256"));
  const auto sums = store::parse_sums(there(".muster/j/n1.sha256"));
  ASSERT_TRUE(sums);
  EXPECT_THAT(*sums, testing::SizeIs(3)) << "what was sent before is in it";
  EXPECT_FALSE(fs::exists(store() / "runs/7/.muster-upload"));
}

// Regression: what was uploaded in the end went over a checkpoint of another job with this URL, and
// its list stayed.
TEST_F(UploadOutputs, AListGoesBeforeItsFilesAreOtherOnes) {
  save(100, "weights");
  save(200, "more");
  let_time_pass();
  for (const std::int64_t step : {100, 200}) {
    const Uploaded sent = upload_step(step);
    EXPECT_EQ(seal(step, {{.node = "n1", .sha256 = sent.sums_sha256}}).problem, "");
    thaw_one(place(step), nullptr);
  }
  const fs::path lists = store() / "runs/7/checkpoints/attempt-1/.muster";
  save(100, "WEIGHTS");
  EXPECT_EQ(upload().problem, "");
  EXPECT_FALSE(fs::exists(lists / "step-100.sha256"));
  EXPECT_TRUE(fs::exists(lists / "step-200.sha256"));
  save(200, "MORE");
  EXPECT_EQ(upload_step(200).problem, "");
  EXPECT_FALSE(fs::exists(lists / "step-200.sha256"));
  EXPECT_TRUE(are_true(lists.parent_path(), ".muster/step-200/n1.sha256"));
}

TEST_F(UploadOutputs, ListsThatTheJobHasAreNoOutputs) {
  save(100, "weights");
  write("checkpoints/attempt-1/.muster/step-100.sha256", "of a copy");
  write(".muster/x", "of a copy");
  write("muster/x", "an output");
  EXPECT_EQ(upload().problem, "");
  EXPECT_FALSE(fs::exists(store() / "runs/7/checkpoints/attempt-1/.muster"));
  EXPECT_EQ(there("muster/x"), "an output");
}

TEST_F(UploadOutputs, ACheckpointIsRemovedByItsLists) {
  for (const std::int64_t step : {100, 200}) {
    save(step, "weights");
    const Uploaded sent = upload_step(step);
    EXPECT_EQ(seal(step, {{.node = "n1", .sha256 = sent.sums_sha256}}).problem, "");
  }
  const fs::path saves = store() / "runs/7/checkpoints/attempt-1";
  std::ofstream(saves / "iter_0000100/of another") << "stays";
  const auto remove = [&](std::int64_t step, bool with_mark) {
    return with_work([&](const UploadWork& work) {
      const auto layout = engine::make_layout("megatron");
      const auto removed = remove_checkpoint(work, {.dir = "checkpoints/attempt-1", .step = step},
                                             **layout, with_mark);
      return removed ? Uploaded() : Uploaded::failed(removed.error());
    });
  };
  // Of another job, which had such a node.
  std::ofstream(saves / ".muster/step-100/n9.sha256")
      << std::string(64, 'a') << "  iter_0000200/__0_0.distcp\n";
  // An agent was killed behind this.
  fs::rename(saves / ".muster/step-100.sha256", saves / ".muster/step-100.removed");
  EXPECT_EQ(remove(100, false).problem, "");
  EXPECT_FALSE(fs::exists(saves / ".muster/step-100.removed"));
  fs::remove_all(saves / ".muster/step-100");
  EXPECT_EQ(text_of(saves / "iter_0000100/of another"), "stays") << "it is in no list";
  EXPECT_FALSE(fs::exists(saves / "iter_0000100/__0_0.distcp"));
  EXPECT_FALSE(fs::exists(saves / ".muster/step-100.sha256"));
  EXPECT_FALSE(fs::exists(saves / ".muster/step-100"));
  EXPECT_TRUE(are_true(saves, ".muster/step-200/n1.sha256"));
  EXPECT_EQ(there("checkpoints/attempt-1/latest_checkpointed_iteration.txt"), "200");
  EXPECT_EQ(remove(100, false).problem, "") << "it is removed already";
  EXPECT_EQ(remove(200, true).problem, "");
  EXPECT_FALSE(fs::exists(saves / "iter_0000200"));
  EXPECT_FALSE(fs::exists(saves / "latest_checkpointed_iteration.txt"));
}

TEST_F(UploadOutputs, AListThatNamesFilesElsewhereRemovesNothing) {
  save(100, "weights");
  const Uploaded sent = upload_step(100);
  const std::string bad = std::string(64, 'a') + "  ../precious\n";
  EXPECT_EQ(seal(100, {{.node = "n1", .sha256 = sent.sums_sha256},
                       {.node = "n2", .sha256 = sha256_hex(bad)}})
                .problem,
            "");
  const fs::path saves = store() / "runs/7/checkpoints/attempt-1";
  std::ofstream(store() / "runs/7/checkpoints/precious") << "stays";
  std::ofstream(saves / ".muster/step-100/n2.sha256") << bad;
  const Uploaded removed = with_work([&](const UploadWork& work) {
    const auto layout = engine::make_layout("megatron");
    const auto done =
        remove_checkpoint(work, {.dir = "checkpoints/attempt-1", .step = 100}, **layout, true);
    return done ? Uploaded() : Uploaded::failed(done.error());
  });
  EXPECT_THAT(removed.problem, HasSubstr("has the name '../precious'"));
  EXPECT_TRUE(fs::exists(store() / "runs/7/checkpoints/precious"));
  EXPECT_TRUE(fs::exists(saves / "iter_0000100/__0_0.distcp"));
}

TEST_F(UploadOutputs, InTheEndThoseThatAreKeptAreUploaded) {
  for (const std::int64_t step : {100, 200, 300})
    write(fmt::format("checkpoints/attempt-1/iter_{:07}/mp_rank_00/model_optim_rng.pt", step), "w");
  write("checkpoints/attempt-1/latest_checkpointed_iteration.txt", "300");
  write("checkpoints/notes", "an output");
  kept_ = {{"attempt-1", 300}, {"attempt-2", 200}};
  EXPECT_EQ(upload().problem, "");
  EXPECT_FALSE(
      fs::exists(store() / "runs/7/checkpoints/attempt-1/latest_checkpointed_iteration.txt"))
      << "a seal writes it";
  const fs::path saves = store() / "runs/7/checkpoints/attempt-1";
  EXPECT_FALSE(fs::exists(saves / "iter_0000100"));
  EXPECT_FALSE(fs::exists(saves / "iter_0000200"));
  EXPECT_TRUE(fs::exists(saves / "iter_0000300/mp_rank_00/model_optim_rng.pt"));
  EXPECT_EQ(there("checkpoints/notes"), "an output");
}

// An agent of an earlier release has remembered files without sums.
TEST_F(UploadOutputs, WhatWasSentWithoutASumGetsOne) {
  node_.clear();
  write("a", "1");
  let_time_pass();
  EXPECT_EQ(upload().problem, "");
  EXPECT_FALSE(fs::exists(store() / "runs/7/.muster"));
  node_ = "n1";
  EXPECT_EQ(upload().problem, "");
  EXPECT_TRUE(are_true(store() / "runs/7", ".muster/j/n1.sha256"));
}

TEST_F(UploadOutputs, WhatIsFrozenIsNoOutput) {
  save(100, "weights");
  ASSERT_TRUE(freeze_checkpoint(place(100), nullptr));
  EXPECT_THAT(listed(), testing::Each(testing::StartsWith("checkpoints/")));
  thaw(out(), JobId("other"), dir_ / "frozen", {}, nullptr);
  thaw(out(), JobId("j"), dir_ / "frozen", {place(100).name()}, nullptr);
  EXPECT_TRUE(fs::exists(out() / ".muster-upload/j.1.100"));
  thaw(out(), JobId("j"), dir_ / "frozen", {}, nullptr);
  EXPECT_FALSE(fs::exists(out() / ".muster-upload"));
  EXPECT_EQ(text_of(out() / "checkpoints/attempt-1/iter_0000100/__0_0.distcp"), "weights");
}

// Regression: an agent that was started again took the frozen files for what they were now.
TEST_F(UploadOutputs, WhatWasWrittenWhileTheAgentWasAwayIsSeen) {
  save(100, "weights");
  ASSERT_TRUE(freeze_checkpoint(place(100), nullptr));
  write("checkpoints/attempt-1/iter_0000100/__0_0.distcp", "WEIGHTS");
  EXPECT_THAT(upload_step(100).problem, HasSubstr("was written after the checkpoint was whole"));
}

// Regression: half of a checkpoint was taken for all of it.
TEST_F(UploadOutputs, ALinkThatIsMissingIsSeen) {
  save(100, "weights");
  ASSERT_TRUE(freeze_checkpoint(place(100), nullptr));
  const fs::path frozen = out() / ".muster-upload/j.1.100/checkpoints/attempt-1/iter_0000100";
  fs::remove(frozen / "__0_0.distcp");
  EXPECT_THAT(upload_step(100).problem, HasSubstr("was removed after the checkpoint was whole"));
  thaw_one(place(100), nullptr);
  EXPECT_FALSE(fs::exists(out() / ".muster-upload"));
  EXPECT_FALSE(fs::exists(dir_ / "frozen/j.1.100"));
  // A directory without a record is not believed.
  fs::create_directories(frozen);
  EXPECT_EQ(upload_step(100).problem, "");
  EXPECT_EQ(there("checkpoints/attempt-1/iter_0000100/__0_0.distcp"), "weights");
}

// Regression: what the link led to was removed.
TEST_F(UploadOutputs, ALinkInThePlaceOfTheDirectoryIsNotFollowed) {
  save(100, "weights");
  fs::create_directories(dir_ / "victim/j.1.50");
  fs::create_directory_symlink(dir_ / "victim", out() / ".muster-upload");
  EXPECT_THAT(upload_step(100).problem, HasSubstr("is no directory"));
  thaw(out(), JobId("j"), dir_ / "frozen", {}, nullptr);
  thaw_one(place(50), nullptr);
  EXPECT_TRUE(fs::exists(dir_ / "victim/j.1.50"));
}

TEST_F(UploadOutputs, OfSeveralNodesNoneUploadsTheMarkInTheEnd) {
  save(100, "weights");
  write("checkpoints/attempt-1/latest_checkpointed_iteration.txt", "100");
  has_others_ = true;
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(there("checkpoints/attempt-1/iter_0000100/__0_0.distcp"), "weights");
  EXPECT_FALSE(
      fs::exists(store() / "runs/7/checkpoints/attempt-1/latest_checkpointed_iteration.txt"));
}

TEST_F(UploadOutputs, WhatACheckpointHasSentIsNotSentAgainInTheEnd) {
  save(100, "weights");
  let_time_pass();
  EXPECT_EQ(upload_step(100).problem, "");
  thaw(out(), JobId("j"), dir_ / "frozen", {}, nullptr);
  std::ofstream(store() / "runs/7/checkpoints/attempt-1/iter_0000100/__0_0.distcp") << "WEIGHTS";
  EXPECT_EQ(upload().problem, "");
  EXPECT_EQ(there("checkpoints/attempt-1/iter_0000100/__0_0.distcp"), "WEIGHTS");
}

TEST_F(UploadOutputs, WhileTheJobTrainsOtherFilesAreUploadedToo) {
  save(100, "weights");
  write("logs/events", "growing");
  write("checkpoints.txt", "notes");
  const Uploaded uploaded = with_work(
      [&](const UploadWork& work) { return upload_others(work, out() / "checkpoints/attempt-1"); });
  EXPECT_EQ(uploaded.problem, "");
  EXPECT_EQ(there("logs/events"), "growing");
  EXPECT_EQ(there("checkpoints.txt"), "notes");
  EXPECT_FALSE(fs::exists(store() / "runs/7/checkpoints"));
  write("large", "");
  fs::resize_file(out() / "large", 64 << 20);
  const auto again = [&] {
    return with_work([&](const UploadWork& work) {
      return upload_others(work, out() / "checkpoints/attempt-1");
    });
  };
  EXPECT_EQ(again().files, 2U) << "it may not be whole";
  let_time_pass();
  EXPECT_EQ(again().files, 3U);
}

TEST_F(UploadOutputs, ACheckpointThatIsGoneIsASentence) {
  EXPECT_THAT(upload_step(100).problem, HasSubstr("it is not there any more"));
  CheckpointPlace elsewhere = place(100);
  elsewhere.save_dir = dir_ / "elsewhere";
  const auto files = freeze_checkpoint(elsewhere, nullptr);
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().message, HasSubstr("write checkpoint.dir below ${out}"));
}

TEST_F(UploadOutputs, ACheckpointOfWhichAPartIsLeftOutIsNotUploaded) {
  save(100, "weights");
  include_ = {"*.json"};
  EXPECT_THAT(upload_step(100).problem,
              HasSubstr("outputs.include leaves out 'checkpoints/attempt-1/iter_0000100/__0_0"));
  EXPECT_TRUE(fs::is_empty(store()));
}

}  // namespace
}  // namespace muster::agent
