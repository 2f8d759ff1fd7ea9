// How far a pull or a load has come, from what the tools print without a terminal, and from what
// their processes show.
#include "agent/container/image_progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "common/io/unique_fd.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

TEST(ImageProgress, OfWhatDockerPullSays) {
  EXPECT_EQ(docker_layers(""), "");
  EXPECT_EQ(docker_layers("1.3: Pulling from team/mindformers\n"), "");
  const std::string begun =
      "1.3: Pulling from team/mindformers\n7a1b: Already exists\n03cc: Pulling fs layer\n9f2e: "
      "Pulling fs layer\n9f2e: Waiting\n";
  EXPECT_EQ(docker_layers(begun), "1 of 3 layers");
  EXPECT_EQ(docker_layers(begun + "03cc: Verifying Checksum\n03cc: Download complete\n"),
            "1 of 3 layers");
  EXPECT_EQ(docker_layers(begun + "03cc: Pull complete\n9f2e: Pull complete\nDigest: "
                                  "sha256:11\nStatus: Downloaded newer image for x\n"),
            "3 of 3 layers");
}

TEST(ImageProgress, OfWhatPodmanPullSays) {
  EXPECT_EQ(
      podman_layers("Trying to pull registry.site/x:1...\nGetting image source signatures\n", 0),
      "");
  EXPECT_EQ(podman_layers("Copying blob sha256:1\n", 0), "1 layer begun");
  EXPECT_EQ(podman_layers("Copying blob sha256:1\nCopying blob sha256:2\n", 2'254'857'830),
            "2 layers begun, 2.1 GiB fetched");
  EXPECT_EQ(
      podman_layers("Copying blob sha256:1\nCopying blob sha256:2\nCopying config sha256:3\n", 77),
      "2 of 2 layers");
}

void fill(const std::filesystem::path& path, std::size_t bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << std::string(bytes, 'x');
}

// This process plays podman.
TEST(ImageProgress, WhatPodmanHasCopiedLiesInADirectoryOfItsOwn) {
  for (const char* name : {"storage12", "container_images_storage12"}) {
    const TempDir dir;
    fill(dir.path() / name / "1", 1 << 20);
    fill(dir.path() / name / "2", 1 << 19);
    ImageProgress load(false, "/x.tar", 4 << 20), pull(false, "", 0);
    EXPECT_EQ(load.update(::getpid(), ""), "") << "nothing of it is open";
    {
      const io::UniqueFd open(::open((dir.path() / name / "2").c_str(), O_RDONLY | O_CLOEXEC));
      EXPECT_EQ(load.update(::getpid(), ""), "1.5 of 4.0 MiB");
      EXPECT_EQ(pull.update(::getpid(), "Copying blob sha256:1\nCopying blob sha256:2\n"),
                "2 layers begun, 1.5 MiB fetched");
    }
    fill(dir.path() / name / "3", 1 << 19);
    EXPECT_EQ(load.update(::getpid(), ""), "2.0 of 4.0 MiB") << "between two of its files";
    std::filesystem::remove_all(dir.path() / name);
    EXPECT_EQ(load.update(::getpid(), ""), "2.0 of 4.0 MiB") << "it is removed at the end";
  }
}

// This process plays docker's client.
TEST(ImageProgress, DockerReadsTheArchiveOnce) {
  const TempDir dir;
  const auto archive = std::filesystem::canonical(dir.path()) / "x.tar";
  fill(archive, 2 << 20);
  ImageProgress load(true, archive.string(), 2 << 20);
  EXPECT_EQ(load.update(::getpid(), ""), "");
  const io::UniqueFd open(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::lseek(open.get(), 1 << 20, SEEK_SET), 1 << 20);
  EXPECT_EQ(load.update(::getpid(), ""), "1.0 of 2.0 MiB");
}

TEST(ImageProgress, AProcessThatIsGoneTellsNothing) {
  ImageProgress load(false, "/x.tar", 4 << 20);
  EXPECT_EQ(load.update(1 << 22, ""), "");
}

}  // namespace
}  // namespace muster::agent
