// A checkpoint comes from a store whose job has uploaded it with lists of its sums.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "common/digest/sha256.h"
#include "common/store/sums.h"
#include "tests/unit/agent_stage/stage_fixture.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;

class StageCheckpoint : public StageInput {
 protected:
  // As two nodes upload it.
  void save(std::int64_t step, const std::string& text) {
    const std::string dir = fmt::format("iter_{:07}", step);
    store::Sums lists;
    for (const std::string node : {"n1", "n2"}) {
      const std::string name = dir + "/" + node + ".distcp";
      write("a1/" + name, text + node);
      const std::string list = store::sums_text({{name, sha256_hex(text + node)}});
      write("a1/" + store::node_sums_name(step, node), list);
      lists.emplace(store::node_sums_name(step, node), sha256_hex(list));
    }
    write("a1/" + store::step_sums_name(step), store::sums_text(lists));
    write("a1/latest_checkpointed_iteration.txt", std::to_string(step));
  }
  [[nodiscard]] std::set<std::string> staged() const {
    std::set<std::string> names;
    for (const auto& one : fs::recursive_directory_iterator(tree("a1")))
      if (one.is_regular_file()) names.insert(one.path().lexically_relative(tree("a1")).native());
    return names;
  }
};

TEST_F(StageCheckpoint, IsFetchedAlone) {
  save(100, "hundred");
  save(200, "two hundred");
  fs::create_directories(store() / "a1/empty");
  step_ = 100;
  const auto state = stage("a1");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(staged(), (std::set<std::string>{"iter_0000100/n1.distcp", "iter_0000100/n2.distcp",
                                             "latest_checkpointed_iteration.txt"}));
  EXPECT_EQ(state->objects(), 3U);
  EXPECT_EQ(text_of(tree("a1") / "iter_0000100/n2.distcp"), "hundredn2");
  EXPECT_EQ(text_of(tree("a1") / "latest_checkpointed_iteration.txt"), "100")
      << "in the store it is of the newest step";
  ASSERT_TRUE(stage("a1", "j2"));
  EXPECT_EQ(fetched_, 0U) << "the node has it";
}

TEST_F(StageCheckpoint, OfAForeignTreeEverythingIsFetched) {
  save(100, "hundred");
  save(200, "two hundred");
  fs::remove(store() / "a1" / store::step_sums_name(100));
  step_ = 100;
  ASSERT_TRUE(stage("a1"));
  EXPECT_TRUE(staged().contains("iter_0000200/n1.distcp"));
}

TEST_F(StageCheckpoint, AFileThatIsAnotherOneIsRefusedByName) {
  save(100, "hundred");
  write("a1/iter_0000100/n2.distcp", "HUNDREDn2");
  step_ = 100;
  const auto state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::DataLoss);
  EXPECT_THAT(state.error().message,
              HasSubstr("'iter_0000100/n2.distcp' is not what its job has uploaded"));
  EXPECT_FALSE(fs::exists(tree("a1")));
  // It is uploaded again, with the same time and size: the node does not believe what it has.
  const auto time = fs::last_write_time(store() / "a1/iter_0000100/n2.distcp");
  write("a1/iter_0000100/n2.distcp", "hundredn2");
  fs::last_write_time(store() / "a1/iter_0000100/n2.distcp", time);
  const auto again = stage("a1");
  EXPECT_TRUE(again) << again.error().message;
}

TEST_F(StageCheckpoint, AFileThatIsNotThereIsNamed) {
  save(100, "hundred");
  fs::remove(store() / "a1/iter_0000100/n1.distcp");
  step_ = 100;
  const auto state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("'iter_0000100/n1.distcp' is not there"));
}

TEST_F(StageCheckpoint, AListThatIsMissingOrAnotherOneIsNamed) {
  save(100, "hundred");
  const std::string list = "a1/" + store::node_sums_name(100, "n2");
  const std::string text = text_of(store() / list);
  step_ = 100;
  write(list, "");
  auto state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("'.muster/step-100/n2.sha256'"));
  EXPECT_THAT(state.error().message, HasSubstr("another one than its checkpoint was whole with"));
  fs::remove(store() / list);
  state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("'.muster/step-100/n2.sha256' is not there"));
  write(list, text);
  write("a1/" + store::step_sums_name(100), "<html>");
  state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("it is no list of the SHA-256 of files"));
}

// Another job goes on there.
TEST_F(StageCheckpoint, ANewerOneThatIsWrittenMeanwhileDoesNotMatter) {
  save(100, "hundred");
  step_ = 100;
  at_ = [this](const std::string& what) {
    if (what == "listing again") save(300, "three hundred");
  };
  const auto state = stage("a1");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_FALSE(staged().contains("iter_0000300/n1.distcp"));
  at_ = nullptr;
  const auto later = stage("a1", "j2");
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(later->contents_sha256(), state->contents_sha256())
      << "the mark in the store is another one now";
  began_with_ = state->contents_sha256();
  const auto again = stage("a1", "j3");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->contents_sha256(), state->contents_sha256());
}

TEST_F(StageCheckpoint, AListWithoutAFileProvesNothing) {
  save(100, "hundred");
  step_ = 100;
  write("a1/" + store::step_sums_name(100), "");
  auto state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("'.muster/step-100.sha256': it has no file"));
  save(100, "hundred");
  const std::string list = store::node_sums_name(100, "n1");
  write("a1/" + list, "");
  write("a1/" + store::step_sums_name(100), store::sums_text({{list, sha256_hex("")}}));
  state = stage("a1");
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("it has no file"));
}

TEST_F(StageCheckpoint, WhatTheSpecNamesIsFetchedAsItIs) {
  save(100, "hundred");
  write("a1/iter_0000100/n2.distcp", "HUNDREDn2");
  step_ = 100;
  include_ = {"iter_0000100/**"};
  const auto state = stage("a1");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(staged(), (std::set<std::string>{"iter_0000100/n1.distcp", "iter_0000100/n2.distcp"}));
}

TEST_F(StageCheckpoint, AListThatIsRepairedIsBelieved) {
  save(100, "hundred");
  const fs::path list = store() / "a1" / store::node_sums_name(100, "n2");
  const std::string text = text_of(list);
  const auto time = fs::last_write_time(list);
  step_ = 100;
  write("a1/" + store::node_sums_name(100, "n2"), std::string(text.size(), 'x'));
  fs::last_write_time(list, time);
  ASSERT_FALSE(stage("a1"));
  write("a1/" + store::node_sums_name(100, "n2"), text);
  fs::last_write_time(list, time);
  const auto state = stage("a1");
  EXPECT_TRUE(state) << state.error().message;
}

// With disks of their own, each has uploaded a file of this name; one is there.
TEST_F(StageCheckpoint, AFileOfTwoNodesMayBeOfEither) {
  save(100, "hundred");
  store::Sums lists;
  for (const std::string node : {"n1", "n2"}) {
    const std::string list = store::sums_text({{"iter_0000100/common.pt", sha256_hex(node)}});
    write("a1/" + store::node_sums_name(100, node), list);
    lists.emplace(store::node_sums_name(100, node), sha256_hex(list));
  }
  write("a1/" + store::step_sums_name(100), store::sums_text(lists));
  step_ = 100;
  for (const std::string node : {"n2", "n1"}) {
    write("a1/iter_0000100/common.pt", node);
    const auto state = stage("a1", node);
    EXPECT_TRUE(state) << state.error().message;
  }
  write("a1/iter_0000100/common.pt", "n3");
  EXPECT_FALSE(stage("a1"));
}

}  // namespace
}  // namespace muster::agent
