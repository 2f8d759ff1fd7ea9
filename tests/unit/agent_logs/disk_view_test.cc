#include "agent/launch/disk_view.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

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

std::vector<std::string> names_of(const DiskView& view, const std::filesystem::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : view.list(dir.string())) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

// A container's job has put links there, which lead elsewhere on the node than in the container.
TEST(DiskView, reads_nothing_outside_the_mounts_of_a_container) {
  const test::TempDir dir;
  const auto mount = dir.path() / "mount", outside = dir.path() / "outside";
  for (const auto& made : {mount, outside}) std::filesystem::create_directory(made);
  std::filesystem::create_directory_symlink(mount, dir.path() / "of the site");
  std::ofstream(mount / "file") << "inside";
  std::ofstream(outside / "file") << "secret";
  std::filesystem::create_symlink("file", mount / "latest");
  std::filesystem::create_symlink(outside / "file", mount / "away");
  std::filesystem::create_directory_symlink(outside, mount / "dir");
  const InReach reach({.user = {},
                       .container = true,
                       .mounts = mount_roots({(dir.path() / "of the site" / "").string()})});
  const DiskView view(nullptr, &reach);
  const std::vector<std::string> inside{"file", "latest"};
  EXPECT_EQ(names_of(view, mount), inside);
  EXPECT_EQ(names_of(view, dir.path() / "of the site"), inside) << "links of the site are followed";
  EXPECT_EQ(view.head((mount / "latest").string(), 10), "inside");
  EXPECT_EQ(view.head((mount / "away").string(), 10), "");
  EXPECT_EQ(view.tail((mount / "dir" / "file").string(), 10), "");
  EXPECT_TRUE(view.list((mount / "dir").string()).empty());
  EXPECT_TRUE(reach.exists((mount / "latest").string()));
  EXPECT_FALSE(reach.exists((mount / "away").string()));
  EXPECT_FALSE(reach.exists((mount / "none").string()));
  EXPECT_EQ(DiskView().head((mount / "away").string(), 10), "secret") << "no container";
}

// Regression: a container that mounts a directory and one below it renamed the lower one, put a
// link there, and the agent took the link's target for the mount.
TEST(DiskView, a_mount_is_where_it_was_when_the_container_started) {
  const test::TempDir dir;
  const auto upper = dir.path() / "upper", outside = dir.path() / "outside";
  std::filesystem::create_directories(upper / "lower");
  std::filesystem::create_directory(outside);
  std::ofstream(outside / "file") << "secret";
  const InReach reach({.user = {},
                       .container = true,
                       .mounts = mount_roots({upper.string(), (upper / "lower").string(),
                                              (upper / "made later").string()})});
  std::filesystem::rename(upper / "lower", upper / "away");
  std::filesystem::create_directory_symlink(outside, upper / "lower");
  std::filesystem::create_directory_symlink(outside, upper / "made later");
  const DiskView view(nullptr, &reach);
  EXPECT_EQ(view.head((upper / "lower" / "file").string(), 10), "");
  EXPECT_EQ(view.head((upper / "made later" / "file").string(), 10), "");
  EXPECT_FALSE(reach.exists((upper / "lower" / "file").string()));
}

TEST(DiskView, reads_with_the_rights_of_the_user_of_the_run) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root reads as another user";
  const test::TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  const auto closed = dir.path() / "closed";
  std::filesystem::create_directory(closed);
  std::ofstream(closed / "file") << "secret";
  ASSERT_EQ(::chmod(closed.c_str(), 0700), 0);
  std::filesystem::create_directory_symlink(closed, dir.path() / "link");
  const std::string file = (dir.path() / "link" / "file").string();
  {
    const InReach reach(
        {.user = UserEntry{.name = {}, .home = {}, .uid = 65534, .gid = 65534, .groups = {}},
         .container = false,
         .mounts = {}});
    const DiskView view(nullptr, &reach);
    EXPECT_EQ(view.head(file, 10), "");
    EXPECT_TRUE(view.list((dir.path() / "link").string()).empty());
    EXPECT_FALSE(reach.exists(file));
    EXPECT_TRUE(reach.exists((dir.path() / "link").string()));
  }
  EXPECT_EQ(DiskView().head(file, 10), "secret") << "this thread has its own rights back";
}

// As an agent of root without CAP_SETUID and CAP_SETGID.
TEST(DiskView, reads_nothing_without_the_rights_of_the_user_of_the_run) {
  const test::TempDir dir;
  const std::string file = (dir.path() / "file").string();
  std::ofstream(file) << "secret";
  ASSERT_EQ(DiskView().head(file, 10), "secret");
  UserEntry user{.name = "ann",
                 .home = {},
                 .uid = static_cast<std::uint32_t>(::geteuid()) + 1,
                 .gid = ::getegid(),
                 .groups = {}};
  // The kernel keeps capabilities for each thread.
  std::thread([&] {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
    ASSERT_EQ(::syscall(SYS_capget, &header, sets), 0);
    sets[0].effective &= ~((1U << CAP_SETUID) | (1U << CAP_SETGID));
    ASSERT_EQ(::syscall(SYS_capset, &header, sets), 0);
    const InReach reach({.user = user, .container = false, .mounts = {}});
    const DiskView view(nullptr, &reach);
    EXPECT_EQ(view.head(file, 10), "");
    EXPECT_TRUE(view.list(dir.path().string()).empty());
    EXPECT_FALSE(reach.exists(file));
    EXPECT_EQ(rights_of(user)(), nullptr);
    const auto have = reach.check();
    ASSERT_FALSE(have);
    EXPECT_EQ(have.error().code, ErrorCode::NotAllowed);
    EXPECT_NE(have.error().message.find("taking the rights of user 'ann'"), std::string::npos)
        << have.error().message;
  }).join();
}

TEST(DiskView, does_not_wait_for_the_other_end_of_a_pipe) {
  const test::TempDir dir;
  const std::string pipe = (dir.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(DiskView().head(pipe, 10), "");
  EXPECT_EQ(DiskView().tail(pipe, 10), "");
  EXPECT_TRUE(DiskView().list(pipe).empty());
  EXPECT_TRUE(InReach(JobReach()).exists(pipe));
  EXPECT_TRUE(
      InReach({.user = {}, .container = true, .mounts = {dir.path().string()}}).exists(pipe));
}

// All of them: the tool of the container mounts each, wherever the site's links lead.
TEST(JobReach, of_a_start_has_what_the_container_has) {
  v1::NodeLaunch order;
  order.add_make_dirs("/out/job/ckpt/attempt-2");
  order.add_make_dirs("/out/job");
  order.add_make_dirs("/out/job/");
  EXPECT_FALSE(reach_of(order, nullptr).container);
  order.mutable_container()->add_mounts()->set_source("/data");
  order.mutable_resume()->set_source("/out/job/ckpt/attempt-1");
  const JobReach reach = reach_of(order, nullptr);
  EXPECT_TRUE(reach.container);
  EXPECT_EQ(std::set<std::string>(reach.mounts.begin(), reach.mounts.end()),
            (std::set<std::string>{"/out/job", "/out/job/ckpt/attempt-1", "/out/job/ckpt/attempt-2",
                                   "/data"}));
  EXPECT_FALSE(reach.user);
  const UserEntry user{.name = {}, .home = {}, .uid = 7, .gid = 7, .groups = {}};
  EXPECT_EQ(reach_of(order, &user).user->uid, 7U);
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
