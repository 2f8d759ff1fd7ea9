// MindFormers' checkpoints: rank directories, both file formats, names, counters, torn files; and
// the ends of the formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "common/engine/files/ckpt_end.h"
#include "common/engine/files/safetensors_end.h"
#include "tests/unit/engine/memory_view.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

CkptEnd end_of(const std::string& file) {
  return read_ckpt_end(
      std::string_view(file).substr(file.size() - std::min(file.size(), kCkptTailBytes)),
      file.size());
}

TEST(CkptEnd, ReadsTheCountersAtTheEnd) {
  for (const std::size_t weights : {4ul, 300ul, 200'000ul}) {
    const CkptEnd end = end_of(ckpt(3, 1234, weights));
    EXPECT_TRUE(end.framed);
    EXPECT_TRUE(end.closed);
    EXPECT_EQ(end.epoch_num, 3);
    EXPECT_EQ(end.step_num, 1234);
    EXPECT_EQ(end.global_step, 1234);
  }
}

TEST(CkptEnd, WeightsAtTheEndCloseNothing) {
  const CkptEnd end = end_of(ckpt(3, 1234, 300, false));
  EXPECT_TRUE(end.framed);
  EXPECT_FALSE(end.closed);
  EXPECT_FALSE(end.step_num);
  EXPECT_FALSE(end_of(ckpt(3, 1234, 200'000, false)).framed)
      << "the last value is larger than what is looked at";
}

TEST(CkptEnd, AChecksumClosesAFile) {
  const std::string file =
      ckpt(3, 7, 300, false) + "crc_num" + std::string(6, '\0') + "\x12\x34\x56\x78";
  EXPECT_TRUE(end_of(file).closed);
  EXPECT_FALSE(end_of(file.substr(0, file.size() - 1)).framed);
}

// A writer that writes in place is killed anywhere: no shorter file passes, except without the
// batch size after the last counter.
TEST(CkptEnd, NoTornFileIsClosed) {
  for (const std::size_t weights : {40ul, 70'000ul}) {
    const std::string file = ckpt(3, 1234, weights);
    const std::size_t counted =
        file.size() - ckpt_value("global_batch_size", "Int64", scalar(64, 8), 0).size();
    for (std::size_t size = 0; size < file.size();
         size += size + 600 < file.size() && size > 600 ? 97 : 1) {
      if (size == counted) continue;
      EXPECT_FALSE(end_of(file.substr(0, size)).closed) << size << " of " << file.size();
    }
    EXPECT_TRUE(end_of(file.substr(0, counted)).closed);
    for (const char c : {'\0', '\n', 'x'}) EXPECT_FALSE(end_of(file + c).closed);
    std::string zeros = file;
    std::fill(zeros.end() - 100, zeros.end(), '\0');
    EXPECT_FALSE(end_of(zeros).closed) << "blocks that never reached the disk";
  }
}

TEST(CkptEnd, AnyBytesAreRead) {
  std::mt19937 random(3);
  for (int round = 0; round < 5'000; ++round) {
    std::string file = ckpt(3, 7, random() % 200);
    for (std::uint32_t i = random() % 8; i > 0; --i)
      file[random() % file.size()] = static_cast<char>(random());
    (void)end_of(file.substr(0, random() % (file.size() + 1)));
  }
  for (const char* unit : {"\x0a", "\x0a\x02", "\x0a\x05\x0a\x01t\x12\x00",
                           "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"}) {
    std::string file;
    while (file.size() < kCkptTailBytes) file += unit;
    (void)end_of(file);
  }
}

bool whole_safetensors(const std::string& file) {
  const auto bytes = safetensors_header_bytes(file.substr(0, 8), file.size());
  return bytes &&
         read_safetensors_header(std::string_view(file).substr(8, *bytes), file.size()).whole;
}

TEST(SafetensorsEnd, SizesMustAddUp) {
  EXPECT_TRUE(whole_safetensors(safetensors(1, 2)));
  EXPECT_TRUE(whole_safetensors(safetensors(1, 2, 300, 7)));
  EXPECT_TRUE(whole_safetensors(safetensors(1, 2, 0)));
  const std::string file = safetensors(1, 2);
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(whole_safetensors(file.substr(0, size))) << size;
  EXPECT_FALSE(whole_safetensors(file + "x"));
  EXPECT_FALSE(whole_safetensors(std::string(4096, '\0')));
  EXPECT_FALSE(whole_safetensors(std::string(4096, '\xff')));
}

TEST(SafetensorsEnd, WhatIsNoHeaderIsNotWhole) {
  const auto whole = [](const std::string& json, std::size_t data) {
    std::string file;
    little(file, json.size(), 8);
    return whole_safetensors(file + json + std::string(data, 'x'));
  };
  EXPECT_TRUE(whole(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4));
  EXPECT_TRUE(whole(
      R"( {"a" : {"data_offsets" : [0, 4], "dtype":"F32","shape":[1]}, "__metadata__":{} } )", 4));
  for (
      const char* json :
      {"{}", "[]", "{\"a\":4}", R"({"a":{"dtype":"F32","shape":[1]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} x)",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",  // one over the other
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}})",
       R"({"a":{"data_offsets":[0,4], "b": {"c": [1]}}})",
       R"({"a":{"data_offsets":[0,4], "shape": [[[[1]]]]}})",
       R"({"__metadata__":{"data_offsets":"[0,4]"}})", R"({"a\)"})
    EXPECT_FALSE(whole(json, 4)) << json;
  EXPECT_FALSE(whole(std::string(1 << 20, '['), 4));
  EXPECT_FALSE(whole("{\"" + std::string(1 << 20, '\\'), 4));
}

class MindFormersTree : public testing::Test {
 protected:
  static std::string name(int rank, int epoch, int step, const std::string& middle = "",
                          const char* ending = "ckpt") {
    return "/s/checkpoint/rank_" + std::to_string(rank) + "/llama_7b_rank_" + std::to_string(rank) +
           middle + "-" + std::to_string(epoch) + "_" + std::to_string(step) + "." + ending;
  }
  // `global` is the step in the files.
  void save(int epoch, int step, int global, std::vector<int> ranks = {0, 1}) {
    for (const int rank : ranks) view.files[name(rank, epoch, step)] = ckpt(epoch, global);
  }
  void use(const LayoutOptions& options) {
    layout = std::move(make_layout("mindformers", options).value());
  }
  [[nodiscard]] std::vector<FoundCheckpoint> scan(std::size_t newest = 2) const {
    return layout->scan(view, "/s", newest);
  }
  [[nodiscard]] std::vector<std::int64_t> steps(std::size_t newest = 9) const {
    std::vector<std::int64_t> found;
    for (const FoundCheckpoint& one : scan(newest)) found.push_back(one.step);
    return found;
  }

  MemoryView view;
  std::unique_ptr<CheckpointLayout> layout =
      std::move(make_layout("mindformers", {.world_size = 2}).value());
};

TEST_F(MindFormersTree, NothingIsNothing) {
  EXPECT_THAT(scan(), IsEmpty());
  view.files["/s/log/rank_0/info.log"] = "x";
  view.files["/s/checkpoint/rank_0/llama_7b_rank_0-graph.meta"] = "x";
  view.files["/s/checkpoint/rank_0/meta.json"] = "{}";
  EXPECT_THAT(scan(), IsEmpty());
}

TEST_F(MindFormersTree, IsCompleteWhenEveryRanksFileIs) {
  save(1, 10, 10, {0});
  auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 10);
  EXPECT_EQ(found[0].path, "/s/checkpoint");
  EXPECT_EQ(found[0].expected, 2u);
  EXPECT_FALSE(complete(found[0]));
  save(1, 10, 10, {1});
  EXPECT_TRUE(complete(scan()[0]));
  EXPECT_EQ(scan()[0].shards[1].name, "rank_1");
  EXPECT_EQ(scan()[0].shards[1].bytes, ckpt(1, 10).size());
  // The save directory may also be the directory that contains the rank directories.
  EXPECT_EQ(layout->scan(view, "/s/checkpoint", 2).size(), 1u);
}

TEST_F(MindFormersTree, WithoutAWorldSizeTheFoldersTell) {
  use({});
  save(1, 10, 10, {0, 1, 3});
  EXPECT_EQ(scan()[0].expected, 4u);
  EXPECT_FALSE(complete(scan()[0]));
  save(1, 10, 10, {2});
  EXPECT_TRUE(complete(scan()[0]));
}

// A node reports its own ranks; the controller combines the reports.
TEST_F(MindFormersTree, ANodeMayReadItsOwnRanksAlone) {
  use({.world_size = 4, .first_rank = 2, .rank_count = 2});
  save(1, 10, 10, {0, 1, 2, 3});
  const auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].expected, 4u);
  EXPECT_TRUE(found[0].sealed);
  ASSERT_EQ(found[0].shards.size(), 2u);
  EXPECT_EQ(found[0].shards[0].name, "rank_2");
}

// In sink mode, E counts sinks: "-20_2" with sinks of 2 is step 40.
TEST_F(MindFormersTree, SinkModeCountsSinks) {
  for (const int sink : {18, 19, 20}) save(sink, 2, 2 * sink);
  EXPECT_THAT(steps(), ElementsAre(40, 38, 36));
  // Files without a counter: every name has the same step.
  for (auto& [path, content] : view.files) content = ckpt(1, 0);
  EXPECT_THAT(steps(), ElementsAre(40, 38, 36));
  use({.world_size = 2, .steps_per_epoch = 100});
  EXPECT_THAT(steps(), ElementsAre(1902, 1802, 1702))
      << "what the job says goes before what names suggest";
}

TEST_F(MindFormersTree, EpochsAreAsLongAsTheFilesSay) {
  save(1, 1000, 1000);
  save(2, 500, 2375);  // 1875 steps an epoch
  save(3, 250, 4000);
  EXPECT_THAT(steps(), ElementsAre(4000, 2375, 1000));
  // One whole file of a later epoch is enough to compute the steps of all.
  for (const int rank : {0, 1}) view.files[name(rank, 3, 250)].resize(200);
  EXPECT_THAT(steps(), ElementsAre(4000, 2375, 1000));
  EXPECT_FALSE(complete(scan()[0]));
  EXPECT_TRUE(complete(scan()[1]));
  // Without any such file, and with names that fit no sink, the step is unknown, and a wrong step
  // would be worse.
  for (const int rank : {0, 1}) view.files[name(rank, 2, 500)].resize(200);
  EXPECT_THAT(steps(), ElementsAre(1000));
}

TEST_F(MindFormersTree, RenamedPrefixesCount) {
  view.files[name(0, 3, 2)] = ckpt(3, 6).substr(0, 100);  // of an older run, torn
  view.files[name(0, 3, 2, "_1")] = ckpt(3, 6);
  view.files[name(1, 3, 2, "_12")] = ckpt(3, 6);
  const auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 6);
  EXPECT_TRUE(complete(found[0]));
  const LinkPlan plan = layout->resume_links(view, "/s", 6);
  EXPECT_THAT(plan.links,
              ElementsAre(std::pair<std::string, std::string>("rank_0/llama_7b_rank_0-3_2.ckpt",
                                                              name(0, 3, 2, "_1")),
                          std::pair<std::string, std::string>("rank_1/llama_7b_rank_1-3_2.ckpt",
                                                              name(1, 3, 2, "_12"))));
}

TEST_F(MindFormersTree, NamesThatAreOthersAreLeftAlone) {
  const std::string file = ckpt(3, 6);
  for (const char* other :
       {"/s/checkpoint_network/rank_0/llama_7b_rank_0-network.ckpt",
        "/s/checkpoint_network/rank_0/llama_7b_rank_0-network-3_2.ckpt",
        "/s/checkpoint_network/rank_0/llama_7b_rank_0-3_2.ckpt",
        "/s/checkpoint_trainable/rank_0/llama_7b_rank_0-3_2.ckpt",
        "/s/transformed_checkpoint/rank_0/checkpoint_0.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_0-network-3_2.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_0-trainable_params-3_2.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_1-3_2.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_0-3_2.ckpt.tmp",
        "/s/checkpoint/rank_0/llama_7b_rank_0-3_2_breakpoint.ckpt",
        "/s/checkpoint/rank_0/llama_7b-3_2.ckpt", "/s/checkpoint/rank_0/_rank_0-3_2.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_0-0_2.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_0-3_0.ckpt",
        "/s/checkpoint/rank_0/llama_7b_rank_0-3_99999999999999999999.ckpt",
        "/s/checkpoint/rank_00/llama_7b_rank_00-3_2.ckpt",
        "/s/checkpoint/rank_x/llama_7b_rank_x-3_2.ckpt",
        "/s/checkpoint/rank_99999999/llama_7b_rank_99999999-3_2.ckpt"})
    view.files[other] = file;
  EXPECT_THAT(scan(), IsEmpty());
  EXPECT_THAT(layout->resume_links(view, "/s", 6).links, IsEmpty());
}

// MindSpore up to 2.2 writes in place, under the final name, and then runs chmod 0400.
TEST_F(MindFormersTree, NoPrefixOfASaveInPlaceIsComplete) {
  save(1, 10, 10);
  save(2, 10, 20);
  const std::string file = ckpt(3, 30);
  view.files[name(0, 3, 10)] = file;
  for (std::size_t size = 0; size < file.size(); ++size) {
    if (size + ckpt_value("global_batch_size", "Int64", scalar(64, 8), 0).size() == file.size())
      continue;
    view.files[name(1, 3, 10)] = file.substr(0, size);
    const auto found = scan();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].step, 30);
    EXPECT_FALSE(complete(found[0])) << size;
    EXPECT_TRUE(complete(found[1]));
  }
  view.files[name(1, 3, 10)] = file;
  EXPECT_TRUE(complete(scan()[0]));
}

// r0.3's files have no counters after the weights: only the mode shows that the writer reached its
// end.
TEST_F(MindFormersTree, AFileThatEndsWithAWeightNeedsItsWritersMark) {
  for (const int rank : {0, 1}) view.files[name(rank, 1, 10)] = ckpt(1, 10, 300, false);
  EXPECT_FALSE(complete(scan()[0]));
  for (const int rank : {0, 1}) view.modes[name(rank, 1, 10)] = 0600;
  EXPECT_FALSE(complete(scan()[0]));
  for (const int rank : {0, 1}) view.modes[name(rank, 1, 10)] = 0400;
  EXPECT_TRUE(complete(scan()[0]));
  // No value begins in the part that is read.
  for (const int rank : {0, 1}) view.files[name(rank, 1, 10)] = ckpt(1, 10, 200'000, false);
  view.files[name(0, 1, 10)].append("x");
  EXPECT_TRUE(complete(scan()[0]));
  // A host that crashed: the size is right, but the blocks are missing.
  view.files[name(0, 1, 10)].append(100'000, '\0');
  EXPECT_FALSE(complete(scan()[0]));
}

TEST_F(MindFormersTree, BothFormatsAreRead) {
  for (const int rank : {0, 1})
    view.files[name(rank, 2, 500, "", "safetensors")] = safetensors(2, 2375);
  auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 2375);
  EXPECT_TRUE(complete(found[0]));
  EXPECT_THAT(
      layout->resume_links(view, "/s", 2375).links,
      ElementsAre(std::pair<std::string, std::string>("rank_0/llama_7b_rank_0-2_500.safetensors",
                                                      name(0, 2, 500, "", "safetensors")),
                  std::pair<std::string, std::string>("rank_1/llama_7b_rank_1-2_500.safetensors",
                                                      name(1, 2, 500, "", "safetensors"))));
  const std::string file = safetensors(2, 2375);
  for (std::size_t size = 0; size < file.size(); ++size) {
    view.files[name(1, 2, 500, "", "safetensors")] = file.substr(0, size);
    found = scan();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].step, 2375);
    EXPECT_FALSE(complete(found[0])) << size;
  }
}

// A header longer than what head() returns is read in parts. With a view that cannot do this, only
// the writer's mark decides.
TEST_F(MindFormersTree, LargeHeadersAreReadInParts) {
  for (const int rank : {0, 1})
    view.files[name(rank, 1, 10, "", "safetensors")] = safetensors(1, 10, 300, 3 << 20);
  EXPECT_TRUE(complete(scan()[0]));
  view.parts = false;
  EXPECT_FALSE(complete(scan()[0]));
  for (const int rank : {0, 1}) view.modes[name(rank, 1, 10, "", "safetensors")] = 0400;
  EXPECT_TRUE(complete(scan()[0]));
}

TEST_F(MindFormersTree, LinksHoldOneStepInEveryRank) {
  save(1, 2, 2);
  save(2, 2, 4);
  const LinkPlan plan = layout->resume_links(view, "/s", 2);
  EXPECT_THAT(
      plan.links,
      ElementsAre(
          std::pair<std::string, std::string>("rank_0/llama_7b_rank_0-1_2.ckpt", name(0, 1, 2)),
          std::pair<std::string, std::string>("rank_1/llama_7b_rank_1-1_2.ckpt", name(1, 1, 2))));
  EXPECT_THAT(
      plan.files,
      ElementsAre(
          std::pair<std::string, std::string>(
              "rank_0/meta.json",
              R"({"last_epoch": 1, "last_step": 2, "last_ckpt_file": "llama_7b_rank_0-1_2.ckpt"})"),
          std::pair<std::string, std::string>(
              "rank_1/meta.json",
              R"({"last_epoch": 1, "last_step": 2, "last_ckpt_file": "llama_7b_rank_1-1_2.ckpt"})")));
  EXPECT_THAT(layout->resume_links(view, "/s", 3).links, IsEmpty());
  EXPECT_THAT(layout->links("/s", 2).links, IsEmpty())
      << "names of files are not known from the step alone";
  // The links are for all visible ranks, whichever node makes them.
  use({.world_size = 2, .first_rank = 1, .rank_count = 1});
  EXPECT_EQ(layout->resume_links(view, "/s", 2).links.size(), 2u);
}

TEST_F(MindFormersTree, NewestFirstAndNoMoreThanAsked) {
  for (int epoch = 1; epoch <= 12; ++epoch) save(epoch, 100, 100 * epoch);
  EXPECT_THAT(steps(3), ElementsAre(1200, 1100, 1000));
  EXPECT_THAT(steps(0), IsEmpty());
}

class MindFormersIterations : public MindFormersTree {
 protected:
  void save(int step, int ranks, bool optimizer = true) {
    char dir[64];
    std::snprintf(dir, sizeof dir, "/s/checkpoint/iteration_%08d/", step);
    for (int rank = 0; rank < ranks; ++rank) {
      for (const char* kind : {"model", "opt"}) {
        if (!optimizer && kind[0] == 'o') continue;
        char file[64];
        std::snprintf(file, sizeof file, "llama-%s-%07d-%07d.safetensors", kind, rank, ranks);
        view.files[std::string(dir) + file] = safetensors(1, step);
      }
    }
    view.files[std::string(dir) + "common.json"] =
        R"({"epoch_num": 1, "step_num": 40, "global_step": 40, "loss_scale": 1.0, "global_batch_size": 64})";
    view.files[std::string(dir) + "metadata.json"] = "{}";
  }
  void tracker(const std::string& text) {
    view.files["/s/checkpoint/latest_checkpointed_iteration.txt"] = text;
  }
};

TEST_F(MindFormersIterations, AreSealedByTheTracker) {
  save(40, 4);
  auto found = scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].expected, 4u);
  EXPECT_FALSE(found[0].sealed);
  for (const char* text : {"", "4", "x", "80"}) {
    tracker(text);
    EXPECT_FALSE(complete(scan()[0])) << text;
  }
  tracker("40");
  EXPECT_TRUE(complete(scan()[0]));
  save(80, 4);
  EXPECT_FALSE(complete(scan()[0])) << "the tracker is behind";
  EXPECT_TRUE(complete(scan()[1]));
  EXPECT_EQ(scan()[0].path, "/s/checkpoint/iteration_00000080");
}

TEST_F(MindFormersIterations, EveryFileIsNeededToItsEnd) {
  save(40, 2);
  tracker("40");
  const std::string path = "/s/checkpoint/iteration_00000040/llama-opt-0000001-0000002.safetensors";
  const std::string file = view.files[path];
  for (std::size_t size = 0; size < file.size(); size += 7) {
    view.files[path] = file.substr(0, size);
    EXPECT_FALSE(complete(scan()[0])) << size;
  }
  view.files.erase(path);
  EXPECT_FALSE(complete(scan()[0]));
  view.files[path] = file;
  EXPECT_TRUE(complete(scan()[0]));
  view.files["/s/checkpoint/iteration_00000040/common.json"] = "{\"epoch_num\": 1";
  EXPECT_FALSE(complete(scan()[0]));
}

TEST_F(MindFormersIterations, WithoutTheOptimizerWeightsAreAll) {
  save(40, 2, false);
  tracker("40");
  EXPECT_TRUE(complete(scan()[0]));
  const LinkPlan plan = layout->resume_links(view, "/s", 40);
  EXPECT_THAT(plan.links, ElementsAre(std::pair<std::string, std::string>(
                              "iteration_00000040", "/s/checkpoint/iteration_00000040")));
  EXPECT_THAT(plan.files, ElementsAre(std::pair<std::string, std::string>(
                              "latest_checkpointed_iteration.txt", "40")));
}

TEST(ResumeProblem, WeightsAloneAreNoSource) {
  EXPECT_EQ(resume_problem("/out/checkpoint"), "");
  EXPECT_EQ(resume_problem("/out/checkpoint/rank_0/x.ckpt"), "");
  EXPECT_EQ(resume_problem("/out/my_checkpoint_network_tests/checkpoint"), "");
  EXPECT_NE(resume_problem("/out/checkpoint_network").find("weights alone"), std::string::npos);
  EXPECT_NE(resume_problem("/out/checkpoint_network/rank_0/").find("'checkpoint'"),
            std::string::npos);
  EXPECT_NE(resume_problem("checkpoint_trainable/rank_0/x.ckpt"), "");
  EXPECT_NE(resume_problem("/ckpt/release/"), "");
}

// A layout reports nothing about trees of other layouts: each row finds nothing in another's tree.
TEST(Layouts, FindNothingInEachOthersTrees) {
  MemoryView view;
  view.files["/s/iter_0000020/mp_rank_00/model_optim_rng.pt"] = zip(1);
  view.files["/s/checkpoint/rank_0/llama_rank_0-1_2.ckpt"] = ckpt(1, 2);
  EXPECT_EQ(make_layout("megatron").value()->scan(view, "/s", 9).size(), 1u);
  EXPECT_EQ(make_layout("mindformers").value()->scan(view, "/s", 9).size(), 1u);
  EXPECT_THAT(make_layout("megatron").value()->scan(view, "/s/checkpoint", 9), IsEmpty());
}

}  // namespace
}  // namespace muster::engine
