#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/engine/files/zip_end.h"
#include "common/engine/model/layout.h"
#include "tests/unit/engine/memory_view.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;

bool whole(const std::string& file) {
  return zip_is_whole(
      std::string_view(file).substr(file.size() - std::min(file.size(), kZipTailBytes)),
      file.size());
}

TEST(ZipEnd, SeesWholeArchives) {
  EXPECT_TRUE(whole(zip(10)));
  EXPECT_TRUE(whole(zip(10, true)));
  EXPECT_TRUE(whole(zip(200'000)));
  EXPECT_TRUE(whole(zip(200'000, true)));
}

// A save is killed anywhere: no shorter file passes.
TEST(ZipEnd, NoTornFilePasses) {
  for (const bool zip64 : {false, true}) {
    const std::string file = zip(300, zip64);
    for (std::size_t size = 0; size < file.size(); ++size)
      EXPECT_FALSE(whole(file.substr(0, size))) << size;
    EXPECT_FALSE(whole(file + "x"));
    EXPECT_FALSE(whole(file + file.substr(0, 50)));
    EXPECT_FALSE(whole("y" + file)) << "a file whose start is another's";
  }
  EXPECT_FALSE(whole(std::string(4096, '\0'))) << "blocks that never reached the disk";
}

TEST(ZipEnd, AnyBytesAreRead) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string file = zip(random() % 100, random() % 2 == 0);
    for (std::uint32_t i = random() % 8; i > 0; --i)
      file[random() % file.size()] = static_cast<char>(random());
    whole(file.substr(0, random() % (file.size() + 1)));
  }
}

class MegatronTree : public testing::Test {
 protected:
  void save(int step, const std::vector<std::string>& ranks, bool optimizer = false) {
    char name[32];
    std::snprintf(name, sizeof name, "iter_%07d", step);
    for (const std::string& rank : ranks) {
      const std::string dir = std::string("/s/") + name + "/" + rank;
      if (optimizer) view.files[dir + "/distrib_optim.pt"] = zip(50);
      view.files[dir + "/model_optim_rng.pt"] = zip(100);
    }
  }
  void tracker(const std::string& text) {
    view.files["/s/latest_checkpointed_iteration.txt"] = text;
  }
  [[nodiscard]] std::vector<FoundCheckpoint> scan(std::size_t newest = 2) const {
    return layout->scan(view, "/s", newest);
  }

  MemoryView view;
  std::unique_ptr<CheckpointLayout> layout = std::move(make_layout("megatron").value());
};

TEST_F(MegatronTree, NothingIsNothing) {
  EXPECT_TRUE(scan().empty());
  view.files["/s/progress.txt"] = "x";
  view.files["/s/iter_5/mp_rank_00/model_optim_rng.pt"] = zip(1);  // not %07d
  view.files["/s/iter_00000x5/mp_rank_00/model_optim_rng.pt"] = zip(1);
  view.files["/s/release/mp_rank_00/model_optim_rng.pt"] = zip(1);
  EXPECT_TRUE(scan().empty());
}

TEST_F(MegatronTree, IsCompleteWhenTheTrackerReachedIt) {
  save(20, {"mp_rank_00"});
  auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].sealed);
  EXPECT_EQ(found[0].expected, 0u) << "nothing tells yet how many there will be";
  EXPECT_TRUE(found[0].shards[0].finished);
  tracker("20");
  found = scan();
  EXPECT_TRUE(complete(found[0]));
  EXPECT_EQ(found[0].path, "/s/iter_0000020");
  EXPECT_EQ(found[0].shards[0].bytes, zip(100).size());
}

TEST_F(MegatronTree, TheTrackerAloneIsNeverTruth) {
  save(20, {"mp_rank_00"});
  save(40, {"mp_rank_00"});
  for (const char* text :
       {"", "garbage", "4", "40x", "-40", "release", "60", "99999999999999999999"}) {
    tracker(text);
    for (const FoundCheckpoint& found : scan())
      EXPECT_FALSE(found.sealed) << "tracker '" << text << "'";
  }
  tracker("20");  // older
  auto found = scan();
  EXPECT_EQ(found[0].step, 40);
  EXPECT_FALSE(found[0].sealed);
  EXPECT_EQ(found[0].expected, 1u);
  EXPECT_TRUE(complete(found[1]));
  tracker("40\n");
  // complete before, and damaged since
  view.files["/s/iter_0000040/mp_rank_00/model_optim_rng.pt"].resize(90);
  found = scan();
  EXPECT_TRUE(found[0].sealed);
  EXPECT_FALSE(complete(found[0]));
  EXPECT_TRUE(complete(found[1]));
}

TEST_F(MegatronTree, EveryShardOfAnEarlierStepIsExpected) {
  save(20, {"mp_rank_00_000", "mp_rank_00_001", "mp_rank_01_000", "mp_rank_01_001"}, true);
  tracker("20");
  save(40, {"mp_rank_00_000", "mp_rank_01_001"}, true);
  auto found = scan(1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].expected, 4u);
  EXPECT_FALSE(complete(found[0]));
  EXPECT_TRUE(complete(scan(2)[1]));
  tracker("40");  // the tracker names it, but half of it is gone
  EXPECT_FALSE(complete(scan(1)[0]));
}

// Regression: a directory that no rank could write was missing in every step, so that each step
// seemed whole compared with its neighbors.
TEST_F(MegatronTree, AsManyShardsAsTheJobSays) {
  layout = std::move(make_layout("megatron", {.shards = 2}).value());
  for (const int step : {20, 40}) save(step, {"mp_rank_00"});
  tracker("40");
  auto found = scan();
  EXPECT_EQ(found[0].expected, 2u);
  EXPECT_FALSE(complete(found[0]));
  save(40, {"mp_rank_00", "mp_rank_01"});
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(MegatronTree, ADistributedOptimizersFileIsNeededOnceAnyShardHasOne) {
  save(20, {"mp_rank_00", "mp_rank_01"}, true);
  tracker("20");
  EXPECT_TRUE(complete(scan()[0]));
  view.files.erase("/s/iter_0000020/mp_rank_01/distrib_optim.pt");
  EXPECT_FALSE(complete(scan()[0]));
  view.files["/s/iter_0000020/mp_rank_01/distrib_optim.pt"] = zip(50).substr(0, 60);
  EXPECT_FALSE(complete(scan()[0]));
}

// Killed at any byte of any file of a save, in the order in which Megatron writes: never complete
// before the tracker.
TEST_F(MegatronTree, NoPrefixOfASaveIsComplete) {
  save(20, {"mp_rank_00", "mp_rank_01"}, true);
  tracker("20");
  const MemoryView before = view;
  save(40, {"mp_rank_00", "mp_rank_01"}, true);
  const MemoryView after = view;
  const std::vector<std::string> order = {"/s/iter_0000040/mp_rank_00/distrib_optim.pt",
                                          "/s/iter_0000040/mp_rank_01/distrib_optim.pt",
                                          "/s/iter_0000040/mp_rank_00/model_optim_rng.pt",
                                          "/s/iter_0000040/mp_rank_01/model_optim_rng.pt"};
  view = before;
  for (const std::string& file : order)
    for (std::size_t size = 0; size <= after.files.at(file).size(); size += 7) {
      view.files[file] = after.files.at(file).substr(0, size);
      const auto found = scan();
      EXPECT_FALSE(complete(found[0])) << file << " at " << size;
      EXPECT_TRUE(complete(found[1]));
      view.files[file] = after.files.at(file);
    }
  tracker("");  // opened for writing
  EXPECT_FALSE(complete(scan()[0]));
  tracker("4");
  EXPECT_FALSE(complete(scan()[0]));
  tracker("40");
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(MegatronTree, NewestFirstAndNoMoreThanAsked) {
  for (int step = 10; step <= 100; step += 10) save(step, {"mp_rank_00"});
  save(12345678, {"mp_rank_00"});  // more than seven digits
  tracker("12345678");
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : scan(3)) steps.push_back(found.step);
  EXPECT_THAT(steps, ElementsAre(12345678, 100, 90));
}

TEST_F(MegatronTree, TorchDistIsSealedByItsMetadata) {
  const std::string dir = "/s/iter_0000020/";
  view.files[dir + "common.pt"] = zip(10);
  view.files[dir + "__0_0.distcp"] = "data";
  view.files[dir + "__1_0.distcp"] = "data";
  tracker("20");
  EXPECT_FALSE(complete(scan()[0])) << "an async save that was killed leaves this";
  view.files[dir + ".metadata"] = "pickle";
  EXPECT_FALSE(complete(scan()[0]));
  const std::string json =
      R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1})";
  for (std::size_t size = 0; size < json.size(); ++size) {
    view.files[dir + "metadata.json"] = json.substr(0, size);
    EXPECT_FALSE(complete(scan()[0])) << size;
  }
  view.files[dir + "metadata.json"] = json;
  EXPECT_TRUE(complete(scan()[0]));
  view.files[dir + "common.pt"].resize(20);
  EXPECT_FALSE(complete(scan()[0]));
}

// Other ranks' files may exist before rank 0's common.pt. Regression: the two scans gave the shard
// two names; the first name was never finished, and so neither was the checkpoint.
TEST_F(MegatronTree, TorchDistHasTheSameShardFromItsFirstFileOn) {
  const std::string dir = "/s/iter_0000020/";
  view.files[dir + "__3_0.distcp"] = "data";
  const auto first = scan()[0];
  ASSERT_EQ(first.shards.size(), 1u);
  EXPECT_FALSE(first.shards[0].finished);
  view.files[dir + "common.pt"] = zip(10);
  view.files[dir + ".metadata"] = "pickle";
  view.files[dir + "metadata.json"] = R"({"sharded_backend": "torch_dist"})";
  tracker("20");
  const auto last = scan()[0];
  EXPECT_TRUE(complete(last));
  ASSERT_EQ(last.shards.size(), 1u);
  EXPECT_EQ(last.shards[0].name, first.shards[0].name);
}

// If the job's own parallel product is known, it decides, even before any checkpoint was whole.
TEST_F(MegatronTree, TheJobMayTellHowManyShardsThereWillBe) {
  layout = std::move(make_layout("megatron", {.shards = 4}).value());
  save(20, {"mp_rank_00_000", "mp_rank_00_001"});
  tracker("20");
  EXPECT_EQ(scan()[0].expected, 4u);
  EXPECT_FALSE(complete(scan()[0]));
  save(20, {"mp_rank_01_000", "mp_rank_01_001"});
  EXPECT_TRUE(complete(scan()[0]));
  // The formats that use one directory have one shard, whatever the product is.
  view.files["/s/iter_0000040/.metadata"] = "pickle";
  view.files["/s/iter_0000040/__0_0.distcp"] = "data";
  tracker("40");
  EXPECT_EQ(scan()[0].expected, 1u);
  EXPECT_TRUE(complete(scan()[0]));
}

// --ckpt-format torch_dcp: no common.pt, no metadata.json.
TEST_F(MegatronTree, TorchDcpIsSealedByItsMetadataAndTheTracker) {
  const std::string dir = "/s/iter_0000020/";
  view.files[dir + "__0_0.distcp"] = "data";
  tracker("20");
  EXPECT_FALSE(complete(scan()[0])) << "the tracker is ahead of its shards";
  view.files[dir + ".metadata.tmp"] = "pickle";
  EXPECT_FALSE(complete(scan()[0]));
  view.files[dir + ".metadata"] = "pickle";
  EXPECT_TRUE(complete(scan()[0]));
  view.files[dir + "__1_0.distcp"] = "";
  EXPECT_FALSE(complete(scan()[0]));
  view.files.erase(dir + "__1_0.distcp");
  tracker("");
  EXPECT_FALSE(complete(scan()[0]));
}

// MindSpeed-MM, FSDP2: first extra_state of every rank, then the shards, then .metadata, then the
// tracker. An asynchronous save writes the tracker at once.
TEST_F(MegatronTree, Fsdp2NeedsEveryRanksExtraState) {
  layout = std::move(make_layout("mindspeed-mm").value());
  const std::string dir = "/s/iter_0000500/";
  for (const char* rank : {"0", "1"})
    view.files[dir + "extra_state/extra_state_rank_" + rank + ".pt"] = zip(40);
  tracker("500");
  EXPECT_TRUE(scan()[0].shards.empty());
  for (const char* rank : {"0", "1"}) view.files[dir + "__" + rank + "_0.distcp"] = "data";
  EXPECT_FALSE(complete(scan()[0]));
  view.files[dir + ".metadata"] = "pickle";
  EXPECT_TRUE(complete(scan()[0]));
  EXPECT_EQ(scan()[0].shards[0].bytes, 4 + 4 + 6 + 2 * zip(40).size());
  for (std::size_t size = 0; size < zip(40).size(); ++size) {
    view.files[dir + "extra_state/extra_state_rank_1.pt"] = zip(40).substr(0, size);
    EXPECT_FALSE(complete(scan()[0])) << size;
  }
  view.files["/s/release/.metadata"] = "pickle";
  EXPECT_EQ(scan().size(), 1u) << "converted weights are no checkpoint";
}

TEST_F(MegatronTree, LinksNameTheOneStep) {
  const LinkPlan plan = layout->links("/s", 20);
  EXPECT_THAT(plan.links,
              ElementsAre(std::pair<std::string, std::string>("iter_0000020", "/s/iter_0000020")));
  EXPECT_THAT(plan.files, ElementsAre(std::pair<std::string, std::string>(
                              "latest_checkpointed_iteration.txt", "20")));
}

class DeepSpeedTree : public testing::Test {
 protected:
  void put(int step, const std::vector<std::string>& names) {
    for (const std::string& name : names)
      view.files["/s/global_step" + std::to_string(step) + "/" + name] = zip(100);
  }
  // ZeRO 1 or 2 on two ranks.
  void save(int step) {
    put(step, {kModel, kFirst, kSecond});
    view.files["/s/zero_to_fp32.py"] = "#!/usr/bin/env python";
  }
  void latest(const std::string& text) { view.files["/s/latest"] = text; }
  void options(const LayoutOptions& options) {
    layout = std::move(make_layout("deepspeed", options).value());
  }
  [[nodiscard]] std::vector<FoundCheckpoint> scan(std::size_t newest = 2) const {
    return layout->scan(view, "/s", newest);
  }

  const std::string kModel = "mp_rank_00_model_states.pt";
  const std::string kFirst = "zero_pp_rank_0_mp_rank_00_optim_states.pt";
  const std::string kSecond = "zero_pp_rank_1_mp_rank_00_optim_states.pt";
  MemoryView view;
  std::unique_ptr<CheckpointLayout> layout =
      std::move(make_layout("deepspeed", {.world_size = 2}).value());
};

TEST_F(DeepSpeedTree, NothingIsNothing) {
  EXPECT_TRUE(scan().empty());
  for (const char* name : {"global_step", "global_step020", "global_step2x", "step20", "epoch3"})
    view.files[std::string("/s/") + name + "/mp_rank_00_model_states.pt"] = zip(1);
  view.files["/s/global_step20"] = "a file";
  latest("global_step20");
  EXPECT_TRUE(scan().empty());
}

TEST_F(DeepSpeedTree, IsCompleteWhenLatestNamesIt) {
  save(20);
  auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].sealed);
  EXPECT_EQ(found[0].expected, 3u) << "a file of each rank, and the model";
  latest("global_step20");
  found = scan();
  EXPECT_TRUE(complete(found[0]));
  EXPECT_EQ(found[0].path, "/s/global_step20");
  EXPECT_EQ(found[0].shards[0].name, kModel);
  EXPECT_EQ(found[0].shards[0].bytes, zip(100).size());
  latest("global_step20\n");
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(DeepSpeedTree, LatestAloneIsNeverTruth) {
  save(20);
  save(40);
  for (const char* text : {"", "garbage", "global_step", "global_step4", "global_step40x", "40",
                           "global_step60", "global_step99999999999999999999"}) {
    latest(text);
    for (const FoundCheckpoint& found : scan())
      EXPECT_FALSE(found.sealed) << "latest '" << text << "'";
  }
  latest("global_step20");
  EXPECT_FALSE(scan()[0].sealed);
  EXPECT_TRUE(complete(scan()[1]));
  latest("global_step40");
  EXPECT_TRUE(complete(scan()[1])) << "of the step before";
  view.files["/s/global_step40/" + kSecond].resize(90);
  EXPECT_TRUE(scan()[0].sealed);
  EXPECT_FALSE(complete(scan()[0]));
}

// Rank 0 writes `latest` when its own files are there, whatever the others do.
TEST_F(DeepSpeedTree, EveryRankHasAFileOfTheOptimizer) {
  put(20, {kModel, kFirst});
  latest("global_step20");
  EXPECT_EQ(scan()[0].expected, 3u);
  EXPECT_FALSE(complete(scan()[0]));
  view.files["/s/global_step20/" + kSecond] = "";
  EXPECT_FALSE(complete(scan()[0]));
  put(20, {kSecond});
  EXPECT_TRUE(complete(scan()[0]));
  view.files.erase("/s/global_step20/" + kModel);
  EXPECT_FALSE(complete(scan()[0]));
}

TEST_F(DeepSpeedTree, ZeroThreeHasAFileOfTheModelARank) {
  put(20, {"bf16_" + kFirst, "bf16_" + kSecond, "zero_pp_rank_0_mp_rank_00_model_states.pt"});
  latest("global_step20");
  EXPECT_EQ(scan()[0].expected, 4u);
  EXPECT_FALSE(complete(scan()[0]));
  put(20, {"zero_pp_rank_1_mp_rank_00_model_states.pt"});
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(DeepSpeedTree, EachPartOfTheModelHasAFile) {
  put(20, {kModel, kFirst, "zero_pp_rank_0_mp_rank_01_optim_states.pt"});
  latest("global_step20");
  EXPECT_EQ(scan()[0].expected, 4u);
  EXPECT_FALSE(complete(scan()[0]));
  put(20, {"mp_rank_01_model_states.pt"});
  EXPECT_TRUE(complete(scan()[0]));
  put(20, {"layer_00-model_00-model_states.pt"});
  EXPECT_EQ(scan()[0].expected, 5u) << "of a pipeline";
  EXPECT_TRUE(complete(scan()[0]));
  view.files["/s/global_step20/layer_00-model_00-model_states.pt"].resize(70);
  EXPECT_FALSE(complete(scan()[0]));
}

// Regression: files of layers and of experts counted as parts of the optimizer.
TEST_F(DeepSpeedTree, NoOtherFileStandsForAPartOfTheOptimizer) {
  put(20, {"layer_00-model_00-model_states.pt", "layer_01-model_00-model_states.pt",
           "layer_0_expert_0_mp_rank_00_model_states.pt", "expp_rank_0_mp_rank_00_optim_states.pt",
           kModel, kFirst});
  latest("global_step20");
  EXPECT_EQ(scan()[0].expected, 7u);
  EXPECT_FALSE(complete(scan()[0]));
  put(20, {kSecond});
  EXPECT_EQ(scan()[0].expected, 7u);
  EXPECT_TRUE(complete(scan()[0]));
  view.files.erase("/s/global_step20/" + kModel);
  EXPECT_EQ(scan()[0].expected, 7u);
  EXPECT_FALSE(complete(scan()[0]));
  // ZeRO 3
  put(20, {"zero_pp_rank_0_mp_rank_00_model_states.pt"});
  EXPECT_FALSE(complete(scan()[0]));
  put(20, {"zero_pp_rank_1_mp_rank_00_model_states.pt"});
  EXPECT_TRUE(complete(scan()[0]));
  view.files.erase("/s/global_step20/" + kFirst);
  EXPECT_EQ(scan()[0].expected, 8u);
  EXPECT_FALSE(complete(scan()[0]));
}

// Regression: two files of the model and one of the optimizer were enough on two ranks.
TEST_F(DeepSpeedTree, NoModelFileStandsForAPartOfTheOptimizer) {
  put(20, {kModel, "mp_rank_01_model_states.pt", kFirst});
  latest("global_step20");
  EXPECT_EQ(scan()[0].expected, 4u);
  EXPECT_FALSE(complete(scan()[0]));
  put(20, {"zero_pp_rank_0_mp_rank_01_optim_states.pt"});
  EXPECT_EQ(scan()[0].expected, 4u);
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(DeepSpeedTree, WithoutZeroOneFileHasEverything) {
  put(20, {kModel});
  EXPECT_EQ(scan()[0].expected, 0u) << "nothing tells yet how many there will be";
  latest("global_step20");
  EXPECT_TRUE(complete(scan()[0]));
  // a count from an earlier step, or from when the checkpoint was found complete
  put(20, {"mp_rank_01_model_states.pt"});
  put(40, {kModel});
  latest("global_step40");
  EXPECT_EQ(scan()[0].expected, 2u);
  EXPECT_FALSE(complete(scan()[0]));
  view.files.erase("/s/global_step20/" + kModel);
  options({.shards = 2, .sealed_step = 20});
  EXPECT_EQ(scan()[1].expected, 2u);
  EXPECT_FALSE(complete(scan()[1]));
}

// Killed at any byte of any file of a save: never complete before `latest`, nor with it as long as
// a file is short.
TEST_F(DeepSpeedTree, NoPrefixOfASaveIsComplete) {
  save(20);
  latest("global_step20");
  const MemoryView before = view;
  save(40);
  const MemoryView after = view;
  for (const char* tag : {"global_step20", "global_step40"}) {
    view = before;
    latest(tag);
    for (const std::string& name : {kModel, kFirst, kSecond}) {
      const std::string file = "/s/global_step40/" + name;
      for (std::size_t size = 0; size < after.files.at(file).size(); size += 7) {
        view.files[file] = after.files.at(file).substr(0, size);
        const auto found = scan();
        ASSERT_EQ(found.size(), 2u);
        EXPECT_FALSE(complete(found[0])) << file << " at " << size;
        EXPECT_TRUE(complete(found[1]));
      }
      view.files[file] = after.files.at(file);
    }
  }
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(DeepSpeedTree, NewestFirstAndNoMoreThanAsked) {
  for (const int step : {5, 90, 100, 1000}) save(step);
  latest("global_step1000");
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : scan(3)) steps.push_back(found.step);
  EXPECT_THAT(steps, ElementsAre(1000, 100, 90));
}

TEST_F(DeepSpeedTree, LinksNameTheOneStep) {
  const LinkPlan plan = layout->links("/s", 20);
  EXPECT_THAT(plan.links, ElementsAre(std::pair<std::string, std::string>("global_step20",
                                                                          "/s/global_step20")));
  EXPECT_THAT(plan.files,
              ElementsAre(std::pair<std::string, std::string>("latest", "global_step20")));
}

// Regression: a program saved what no layout knows. Nothing was reported, and its next attempt
// began at step 0.
TEST(Layouts, AFileThatSeemsSavedAndIsNoCheckpointIsNamed) {
  const auto unknown = [](const char* layout, const std::map<std::string, std::string>& files) {
    MemoryView view;
    for (const auto& [path, content] : files) view.files["/save/" + path] = content;
    const auto made = make_layout(layout);
    return unknown_file(**made, view, "/save", (*made)->scan(view, "/save", 2));
  };
  const std::map<std::string, std::string> own = {
      {"step_20.pt", "weights"}, {"log.txt", "a long text"}, {"args.json", "{}"}};
  EXPECT_EQ(unknown("megatron", own), "step_20.pt");
  EXPECT_EQ(unknown("mindformers", own), "step_20.pt");
  EXPECT_EQ(unknown("megatron", {{"checkpoint-20/model.safetensors", "weights"},
                                 {"checkpoint-20/trainer_state.json", "{}"}}),
            "checkpoint-20/model.safetensors")
      << "the largest of them";
  EXPECT_EQ(unknown("megatron", {{"iter_0000020/weights.bin", "w"}}), "iter_0000020/weights.bin")
      << "a name that it knows, and nothing of a checkpoint in it";
  EXPECT_EQ(unknown("megatron", {}), "");
  EXPECT_EQ(unknown("megatron",
                    {{"args.json", "{}"}, {"train.log", "step 1"}, {"events.out.tfevents.1", "x"}}),
            "")
      << "side files alone";
  EXPECT_EQ(unknown("megatron", {{"step_20.pt", ""}}), "") << "empty as yet";
  EXPECT_EQ(unknown("megatron", {{"latest_checkpointed_iteration.txt", "20"},
                                 {"release/mp_rank_00/model_optim_rng.pt", "w"}}),
            "");
  EXPECT_EQ(unknown("megatron", {{"iter_0000020/mp_rank_00/model_optim_rng.pt", "torn"},
                                 {"extra.pt", "weights"}}),
            "")
      << "being saved: the layout's matter";
  EXPECT_EQ(unknown("deepspeed", {{"latest", "epoch3"},
                                  {"zero_to_fp32.py", "a long script, longer than the weights"},
                                  {"epoch3/mp_rank_00_model_states.pt", "w"}}),
            "epoch3/mp_rank_00_model_states.pt")
      << "a tag of the program's own";
  EXPECT_EQ(unknown("mindformers", {{"strategy/ckpt_strategy_rank_0.ckpt", "s"},
                                    {"checkpoint_network/rank_0/x-network.safetensors", "w"}}),
            "");
}

TEST(Layouts, NoneFindsNothingAndUnknownIsAnError) {
  MemoryView view;
  view.files["/s/iter_0000020/mp_rank_00/model_optim_rng.pt"] = zip(1);
  EXPECT_TRUE(make_layout("none").value()->scan(view, "/s", 2).empty());
  const auto unknown = make_layout("zarr");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "looking for checkpoints: layout 'zarr' is not known (mindformers | megatron | "
            "mindspeed-mm | torch | deepspeed | command | none)");
}

}  // namespace
}  // namespace muster::engine
