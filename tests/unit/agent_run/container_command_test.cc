// The exact command lines for podman and docker, and which mounts are impossible.
#include "agent/container/container_command.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const ContainerRun kContainer{.name = "muster-c0ffee00-n1-job-1",
                              .image = "sha256:0123",
                              .process_tag = "c0ffee/job.1@n1",
                              .worker = "/opt/muster/bin/muster-worker",
                              .directory = "/var/lib/muster/agent/runs/job.1"};

v1::NodeLaunch boxed() {
  v1::NodeLaunch order;
  order.mutable_container()->set_image("img:1");
  order.add_make_dirs("/out/job");
  order.add_make_dirs("/out/job/ckpt/attempt-1");
  v1::RankProcess& rank = *order.add_ranks();
  rank.add_devices(0);
  return order;
}

void mount(v1::NodeLaunch& order, const std::string& source, const std::string& target,
           bool read_only = false) {
  v1::ContainerMount& out = *order.mutable_container()->add_mounts();
  out.set_source(source);
  out.set_target(target);
  out.set_read_only(read_only);
}

// One option and its value for each line.
std::string command_of(const v1::NodeLaunch& order, const ContainerTool& tool,
                       const ContainerNode& node) {
  const auto words = container_command(order, tool, node, kContainer);
  if (!words) return "refused: " + words.error().message;
  std::string text;
  for (const std::string& word : *words)
    text += (text.empty() ? "" : word.starts_with("--") ? "\n" : " ") + word;
  return text;
}

const ContainerTool kPodman{.program = "/usr/bin/podman", .args = {"--runtime", "runc"}};
const ContainerTool kDocker{.program = "/usr/bin/docker", .docker = true};

TEST(ContainerCommand, PodmanOnANodeWithoutCards) {
  v1::NodeLaunch order = boxed();
  mount(order, "/data/wiki", "/data", true);
  mount(order, "/home/ada/exp", "");
  EXPECT_EQ(
      command_of(order, kPodman,
                 {.there = {"/etc/localtime", "/home/ada/exp"},
                  .limits = {{.name = "nofile", .soft = 1024, .hard = 4096}},
                  .user = "0:0"}),
      "/usr/bin/podman\n"
      "--runtime runc run\n"
      "--rm\n"
      "--name muster-c0ffee00-n1-job-1\n"
      "--pull never\n"
      "--log-driver none\n"
      "--no-healthcheck\n"
      "--stop-timeout 0\n"
      "--network host\n"
      "--ipc host\n"
      "--pid host\n"
      "--userns host\n"
      "--security-opt label=disable\n"
      "--pids-limit -1\n"
      "--user 0:0\n"
      "--workdir /\n"
      "--env MUSTER_PROCESS_TAG=c0ffee/job.1@n1\n"
      "--ulimit nofile=1024:4096\n"
      "--mount "
      "type=bind,source=/var/lib/muster/agent/runs/job.1,target=/var/lib/muster/agent/runs/job.1\n"
      "--mount "
      "type=bind,source=/opt/muster/bin/muster-worker,target=/opt/muster/bin/"
      "muster-worker,readonly\n"
      "--mount type=bind,source=/data/wiki,target=/data,readonly\n"
      "--mount type=bind,source=/home/ada/exp,target=/home/ada/exp\n"
      "--mount type=bind,source=/out/job,target=/out/job\n"
      "--mount type=bind,source=/etc/localtime,target=/etc/localtime,readonly\n"
      "--entrypoint /opt/muster/bin/muster-worker sha256:0123 /var/lib/muster/agent/runs/job.1");
}

TEST(ContainerCommand, LimitsOfMemoryAndProcessors) {
  v1::NodeLaunch order = boxed();
  EXPECT_THAT(command_of(order, kDocker, {}),
              Not(AnyOf(HasSubstr("--memory"), HasSubstr("--cpus"))));
  order.mutable_container()->set_memory_bytes(200ULL << 30U);
  order.mutable_container()->set_millicpus(48'050);
  for (const ContainerTool& tool : {kPodman, kDocker})
    EXPECT_THAT(command_of(order, tool, {}),
                HasSubstr("\n--memory 214748364800b\n--cpus 48.050\n"));
}

TEST(ContainerCommand, StandardInputReachesAWorkerThatGetsSecrets) {
  v1::NodeLaunch order = boxed();
  EXPECT_THAT(command_of(order, kDocker, {}), Not(HasSubstr("--interactive")));
  order.add_secrets()->set_variable("HF_TOKEN");
  for (const ContainerTool& tool : {kPodman, kDocker})
    EXPECT_THAT(command_of(order, tool, {}), HasSubstr("\n--interactive\n"));
}

// By the command that started the run, the innermost mount.
TEST(ContainerCommand, WhatIsMountedHasAPathOnTheNode) {
  v1::NodeLaunch order = boxed();
  mount(order, "/fast/a", "/data", true);
  mount(order, "/fast/b", "/data/b");
  const auto words = container_command(order, kPodman, {}, kContainer);
  ASSERT_TRUE(words);
  rundir::v1::ContainerLaunch container;
  for (const std::string& word : *words) container.add_argv(word);
  const auto from = [&](const char* path) {
    const auto found = mounted_from(container, path);
    return found ? found->source + " " + found->rest : "";
  };
  EXPECT_EQ(from("/data/x/log"), "/fast/a /x/log");
  EXPECT_EQ(from("/data/b/log"), "/fast/b /log");
  EXPECT_EQ(from("/data/bc"), "/fast/a /bc");
  EXPECT_EQ(from("/data/b"), "/fast/b ");
  EXPECT_THAT(from("/out/job/log_0"), HasSubstr("/log_0"));
  EXPECT_EQ(from("/database/log"), "");
  EXPECT_EQ(from("/tmp/log"), "");
  const std::vector<std::string> sources = mount_sources(container);
  EXPECT_THAT(sources, testing::AllOf(testing::Contains("/fast/a"), testing::Contains("/fast/b")));
  EXPECT_THAT(sources, Not(testing::Contains("/data/b"))) << "where it is in the container";
}

// As in the vendor's guides. It uses all cards, because with fewer the driver would renumber them.
TEST(ContainerCommand, DockerOnAscend) {
  v1::NodeLaunch order = boxed();
  mount(order, "/srv/logs", "/usr/slog");
  const std::string text =
      command_of(order, kDocker,
                 {.cards = {"/dev/davinci0", "/dev/davinci1"},
                  .there = {"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc",
                            "/usr/local/Ascend/driver", "/usr/local/bin/npu-smi", "/usr/local/dcmi",
                            "/etc/ascend_install.info", "/etc/hccn.conf", "/var/log/npu"},
                  .limits = {{.name = "memlock", .soft = UINT64_MAX, .hard = UINT64_MAX}},
                  .user = "1000:1000"});
  EXPECT_THAT(text, HasSubstr("/usr/bin/docker run\n--rm\n"));
  EXPECT_THAT(text, HasSubstr("--user 1000:1000\n"));
  EXPECT_THAT(text, HasSubstr("--ulimit memlock=-1:-1\n"
                              "--device /dev/davinci0\n"
                              "--device /dev/davinci1\n"
                              "--device /dev/davinci_manager\n"
                              "--device /dev/devmm_svm\n"
                              "--device /dev/hisi_hdc\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "--mount "
          "type=bind,source=/usr/local/Ascend/driver,target=/usr/local/Ascend/driver,readonly\n"
          "--mount type=bind,source=/usr/local/bin/npu-smi,target=/usr/local/bin/npu-smi,readonly\n"
          "--mount type=bind,source=/usr/local/dcmi,target=/usr/local/dcmi,readonly\n"
          "--mount "
          "type=bind,source=/etc/ascend_install.info,target=/etc/ascend_install.info,readonly\n"
          "--mount type=bind,source=/etc/hccn.conf,target=/etc/hccn.conf,readonly\n"
          "--entrypoint"));
  EXPECT_THAT(text, HasSubstr("--mount type=bind,source=/srv/logs,target=/usr/slog\n"))
      << "the job's own goes before the vendor's";
  EXPECT_THAT(text, Not(HasSubstr("/var/log/npu")));
  EXPECT_THAT(text, Not(HasSubstr("--gpus")));
}

TEST(ContainerCommand, VendorsLogsAreAtSlog) {
  EXPECT_THAT(command_of(boxed(), kPodman, {.there = {"/var/log/npu"}}),
              HasSubstr("--mount type=bind,source=/var/log/npu,target=/usr/slog\n"));
}

TEST(ContainerCommand, GpusForWhoUsesThem) {
  v1::NodeLaunch order = boxed();
  const ContainerNode node{.there = {"/dev/nvidiactl"}};
  EXPECT_THAT(command_of(order, kDocker, node), Not(HasSubstr("gpu")))
      << "a job on the node's processors";
  (*order.mutable_ranks(0)->mutable_env())["CUDA_VISIBLE_DEVICES"] = "2,3";
  EXPECT_THAT(command_of(order, kDocker, node), HasSubstr("--gpus all\n"));
  EXPECT_THAT(command_of(order, kPodman, node), HasSubstr("--device nvidia.com/gpu=all\n"));
  EXPECT_THAT(command_of(order, kPodman, {}), Not(HasSubstr("gpu"))) << "and the node has none";
}

TEST(ContainerCommand, WhatTheJobGoesOnFromIsThere) {
  v1::NodeLaunch order = boxed();
  order.mutable_resume()->set_source("/ckpt/attempt-1");
  order.mutable_resume()->set_dir("/out/job/resume/attempt-2");
  const std::string text = command_of(order, kPodman, {});
  EXPECT_THAT(text,
              HasSubstr("--mount type=bind,source=/ckpt/attempt-1,target=/ckpt/attempt-1\n--mount "
                        "type=bind,source=/out/job,target=/out/job\n--entrypoint"));
}

TEST(ContainerCommand, CodeThatTheNodeDoesNotHaveIsTheImages) {
  v1::NodeLaunch order = boxed();
  mount(order, "/workspace/code", "");
  EXPECT_THAT(command_of(order, kPodman, {}), Not(HasSubstr("/workspace/code")));
}

TEST(ContainerCommand, NothingCoversTheRunsOwnFiles) {
  const auto says = [](const std::string& source, const std::string& target) {
    v1::NodeLaunch order = boxed();
    mount(order, source, target);
    return command_of(order, kPodman, {});
  };
  for (const auto& [target, own] :
       {std::pair("/var/lib/muster", "/var/lib/muster/agent/runs/job.1"),
        {"/var/lib/muster/agent/runs/job.1", "/var/lib/muster/agent/runs/job.1"},
        {"/var/lib/muster/agent/runs/job.1/logs", "/var/lib/muster/agent/runs/job.1"},
        {"/opt", "/opt/muster/bin/muster-worker"},
        {"/opt/muster/bin/muster-worker", "/opt/muster/bin/muster-worker"}}) {
    EXPECT_EQ(
        says("/data", target),
        fmt::format(
            "refused: mounting '/data' at '{}': muster's own '{}' is there; mount it elsewhere",
            target, own));
  }
  EXPECT_THAT(says("/var/lib", "/var/lib"),
              HasSubstr("--mount type=bind,source=/var/lib,target=/var/lib\n"))
      << "its own place: the run's files are mounted over it";
  EXPECT_THAT(
      says("/data", "/var/lib/muster/agent/runs/job.11"),
      HasSubstr("--mount type=bind,source=/data,target=/var/lib/muster/agent/runs/job.11\n"));
  EXPECT_EQ(says("/da,ta", "/data"),
            "refused: mounting '/da,ta': it has a ',', a '\"' or a line feed in it, which podman "
            "and docker do not accept");
  EXPECT_THAT(says("/da:ta", "/data"), HasSubstr("--mount type=bind,source=/da:ta,target=/data\n"));
}

// The agent scans for checkpoints on the node, so the job must not write them elsewhere.
TEST(ContainerCommand, NothingHidesWhereTheJobWrites) {
  const auto says = [](const std::string& source, const std::string& target) {
    v1::NodeLaunch order = boxed();
    mount(order, source, target);
    return command_of(order, kPodman, {});
  };
  for (const auto& [target, hidden] :
       {std::pair("/out/job", "/out/job"), {"/out/job/ckpt", "/out/job/ckpt/attempt-1"}}) {
    EXPECT_EQ(says("/fast", target),
              fmt::format("refused: mounting '/fast' at '{}': the job's own directory '{}' would "
                          "be hidden by it, where muster looks for what the job writes; mount it "
                          "elsewhere",
                          target, hidden));
  }
  EXPECT_THAT(says("/fast", "/out"),
              HasSubstr("--mount type=bind,source=/fast,target=/out\n--mount "
                        "type=bind,source=/out/job,target=/out/job\n"))
      << "the job's is mounted over it";
  EXPECT_THAT(says("/fast", "/out/job/cache"),
              HasSubstr("--mount type=bind,source=/fast,target=/out/job/cache\n"));
  EXPECT_THAT(says("/out/job", "/out/job"),
              HasSubstr("--mount type=bind,source=/out/job,target=/out/job\n"));
}

TEST(ContainerCommand, Names) {
  EXPECT_EQ(container_name("0123456789abcdef", "n1.site", "j0b", 12),
            "muster-01234567-n1.site-j0b-12");
  EXPECT_EQ(container_name("c", "a/b c", "j", 1), "muster-c-a-b-c-j-1");
}

TEST(ContainerCommand, TheNodesOwnIsBelowCode) {
  const TempDir dir;
  dir.write("code/train.py", "");
  v1::NodeLaunch order = boxed();
  mount(order, (dir.path() / "code").string(), "");
  mount(order, dir.path().string(), "/data");
  EXPECT_TRUE(is_nodes_own(order, (dir.path() / "code/train.py").string()));
  EXPECT_FALSE(is_nodes_own(order, (dir.path() / "codex").string()));
  mount(order, "/elsewhere", (dir.path() / "code/sub").string());
  EXPECT_FALSE(is_nodes_own(order, (dir.path() / "code/sub/train.py").string()))
      << "another mount is over it";
  EXPECT_TRUE(is_nodes_own(order, (dir.path() / "code/subway.py").string()));
  EXPECT_FALSE(is_nodes_own(order, "/data/train.py"))
      << "mounted from elsewhere: only the container sees it";
}

}  // namespace
}  // namespace muster::agent
