#include "agent/launch/disk_view.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "agent/saves/checkpoint_watch.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::agent {
namespace {

TEST(DiskView, tells_kinds_sizes_and_modes) {
  const test::TempDir dir;
  std::ofstream(dir.path() / "file") << "12345";
  ASSERT_EQ(::chmod((dir.path() / "file").c_str(), 0400), 0);
  std::filesystem::create_directory(dir.path() / "folder");
  ASSERT_EQ(::mkfifo((dir.path() / "fifo").c_str(), 0600), 0);
  auto found = DiskView().list(dir.path().string());
  std::ranges::sort(found, {}, &engine::FileView::Entry::name);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].bytes, 0U) << "a FIFO has none";
  EXPECT_EQ(found[1].name, "file");
  EXPECT_EQ(found[1].bytes, 5U);
  EXPECT_EQ(found[1].mode, 0400U);
  EXPECT_FALSE(found[1].directory);
  EXPECT_TRUE(found[2].directory);
}

TEST(DiskView, reads_parts) {
  const test::TempDir dir;
  const std::string file = (dir.path() / "file").string();
  std::ofstream(file) << "0123456789";
  const DiskView view;
  EXPECT_EQ(view.head(file, 4), "0123");
  EXPECT_EQ(view.tail(file, 4), "6789");
  EXPECT_EQ(view.tail(file, 100), "0123456789");
  EXPECT_EQ(view.part(file, 3, 4), "3456");
  EXPECT_EQ(view.part(file, 8, 4), "89");
  EXPECT_EQ(view.part(file, 10, 4), "");
  EXPECT_EQ(view.part(file, ~0ULL, 4), "");
  EXPECT_EQ(view.part(dir.path().string(), 0, 4), "") << "a directory";
  EXPECT_EQ(view.part(file + ".none", 0, 4), "");
  std::filesystem::resize_file(file, 3 << 20);
  EXPECT_EQ(view.part(file, 1, 2 << 20).size(), DiskView::kReadMost);
}

TEST(DiskView, knows_the_file_system_of_what_is_not_there_yet) {
  const test::TempDir dir;
  struct stat about{};
  ASSERT_EQ(::stat(dir.path().c_str(), &about), 0);
  EXPECT_EQ(device_of(dir.path().string()), about.st_dev);
  EXPECT_EQ(device_of((dir.path() / "a" / "b" / "").string()), about.st_dev);
  EXPECT_NE(device_of("/no-such-directory/x"), 0U) << "the root's";
  EXPECT_EQ(device_of("relative-and-not-there"), 0U);
}

// Regression: MindFormers' file with a header longer than what head() returns never counted as
// whole, and nothing resumed from it.
TEST(DiskView, gives_a_layout_what_it_needs_of_long_headers) {
  const test::TempDir dir;
  std::string header = R"({"__metadata__":{"note":")" + std::string(2 << 20, 'x') +
                       R"("},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  while (header.size() % 8 != 0) header += ' ';
  std::string bytes(8, '\0');
  for (std::size_t at = 0; at < 8; ++at) bytes[at] = static_cast<char>(header.size() >> (8 * at));
  std::filesystem::create_directories(dir.path() / "checkpoint" / "rank_0");
  std::ofstream(dir.path() / "checkpoint" / "rank_0" / "llama_rank_0-1_40.safetensors",
                std::ios::binary)
      << bytes << header << "wwww";

  v1::Watching watching;
  watching.set_layout("mindformers");
  watching.set_save_dir(dir.path().string());
  watching.set_world_size(4);
  const auto watch = CheckpointWatch::make(watching);
  ASSERT_TRUE(watch.has_value());
  const auto found = (*watch)->save_dir().scan(DiskView());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].step, 40);
  ASSERT_EQ(found[0].shards.size(), 1U);
  EXPECT_TRUE(found[0].shards[0].finished);
  EXPECT_EQ(found[0].expected, 4U) << "the job's ranks, not those whose directories are there";
}

}  // namespace
}  // namespace muster::agent
