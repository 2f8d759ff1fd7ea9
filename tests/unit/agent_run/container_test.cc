// A run in a container, with a script instead of podman: it keeps a list of images, and "runs" a
// container by executing the entry point directly.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <future>
#include <thread>

#include "agent/container/container_image.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kTool = R"sh(#!/bin/sh
here=$(dirname "$0")
test "$1" = --own && shift
echo "$*" >> "$here/calls"
verb=$1
shift
for last; do :; done
file() { echo "$here/images/$(echo "$1" | tr '/:' '__')"; }
case $verb in
  image) cat "$(file "$last")" 2> "$here/none" || exit 1 ;;
  pull) test -p "$here/gate" && read -r word < "$here/gate"
        case $1 in *unknown*) echo "Trying to pull $1..."; echo "Error: manifest unknown" >&2; exit 125 ;; esac
        printf 'sha256:77\n["FROM_IMAGE=pulled"]\n' > "$(file "$1")" ;;
  load) grep -q full "$2" && { echo "Copying blob sha256:5e"; echo "Error: writing blob: no space left on device" >&2; exit 125; }
        grep -q broken "$2" && { echo "Copying blob sha256:5e"; echo "Error: writing blob: unexpected EOF" >&2; exit 125; }
        grep -q killed "$2" && kill -9 $$
        grep -q empty "$2" && exit 0
        grep -q archive "$2" || { echo "Error: payload does not match any format" >&2; exit 125; }
        echo "Getting image source signatures"; echo "Loaded image: img:1" ;;
  tag) cp "$(file img:1)" "$(file "$2")" ;;
  import) grep -q root "$1" || { echo "Error: invalid tar header" >&2; exit 125; }
          printf 'sha256:99\nnull\n' > "$(file "$2")" ;;
  run) test -e "$here/broken" && { echo "Error: runc: no such thing" >&2; exit 125; }
       while test "$1" != --entrypoint; do test "$1" = --env && export "$2"; shift; done
       worker=$2
       shift 3
       exec "$worker" "$@" ;;
esac
)sh";

class ContainerTest : public ::testing::Test {
 protected:
  ContainerTest() {
    ::chmod(dir_.write("podman", kTool).c_str(), 0755);
    dir_.write("images/img_1", "sha256:01\n[\"FROM_IMAGE=there\",\"HOME=/image/home\"]\n");
  }
  ~ContainerTest() override { EXPECT_EQ(living(), 0U); }
  [[nodiscard]] std::function<void(HostOptions&)> with_tool() const {
    return [this](HostOptions& options) {
      options.container = {.tool = (dir_.path() / "podman").string(), .args = {"--own"}};
    };
  }
  [[nodiscard]] ContainerTool tool() const {
    return {.program = (dir_.path() / "podman").string()};
  }
  [[nodiscard]] v1::NodeLaunch boxed(const std::string& script,
                                     const std::string& image = "img:1") const {
    v1::NodeLaunch launch = shell_launch(dir_.path(), script);
    launch.add_make_dirs(dir_.path().string());
    launch.mutable_container()->set_image(image);
    return launch;
  }
  [[nodiscard]] std::string calls() const { return read_text(dir_.path() / "calls"); }
  [[nodiscard]] static std::string log_of(const HostIncarnation& agent) {
    return read_text(rundir::RunLayout(agent.run_dir()).rank_log(0));
  }

  TempDir dir_;
};

TEST_F(ContainerTest, RanksRunInItWithTheImagesVariables) {
  HostIncarnation agent(dir_.path() / "state", with_tool());
  agent.perform(StartRun{.run = kRun, .launch = boxed("echo \"$FROM_IMAGE in $HOME\"")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) {
    return seen.swept && seen.worker == WorkerState::Dead;
  })) << calls();
  EXPECT_EQ(agent.seen().exits.at(0).code, 0);
  EXPECT_EQ(log_of(agent), "there in /image/home\n");
  EXPECT_THAT(calls(), HasSubstr("run --rm --name muster-"));
  EXPECT_THAT(calls(), Not(HasSubstr("\npull "))) << "it was there";
}

// Success files and checkpoints are read only below them (job_reach.h).
TEST_F(ContainerTest, TheRecordHasWhereItsMountsAre) {
  std::filesystem::create_directory(dir_.path() / "disk");
  std::filesystem::create_directory_symlink(dir_.path() / "disk", dir_.path() / "link");
  v1::NodeLaunch order = boxed("true");
  order.mutable_container()->add_mounts()->set_source((dir_.path() / "link").string());
  HostIncarnation agent(dir_.path() / "state", with_tool());
  agent.perform(StartRun{.run = kRun, .launch = order});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) {
    return seen.swept && seen.worker == WorkerState::Dead;
  })) << calls();
  const auto launch = rundir::read_launch(rundir::RunLayout(agent.run_dir()));
  ASSERT_TRUE(launch && *launch);
  const auto& roots = (*launch)->container().mount_roots();
  const std::string disk = std::filesystem::canonical(dir_.path() / "disk").string();
  EXPECT_THAT(std::vector<std::string>(roots.begin(), roots.end()), testing::Contains(disk));
}

TEST_F(ContainerTest, WhatTheOrderSetsIsOverTheImage) {
  HostIncarnation agent(dir_.path() / "state", with_tool());
  v1::NodeLaunch order = boxed("echo \"$FROM_IMAGE\"");
  (*order.mutable_env())["FROM_IMAGE"] = "ordered";
  agent.perform(StartRun{.run = kRun, .launch = order});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(log_of(agent), "ordered\n");
}

TEST_F(ContainerTest, SetupRunsInItWithTheShellThatIsThere) {
  HostIncarnation agent(dir_.path() / "state", with_tool());
  v1::NodeLaunch order = boxed("echo \"$MADE\"");
  order.mutable_setup()->add_commands("export MADE=\"of $FROM_IMAGE\"");
  order.mutable_setup()->set_cwd("/");
  agent.perform(StartRun{.run = kRun, .launch = order});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(log_of(agent), "of there\n");
}

TEST_F(ContainerTest, PullingIsAPartOfTheSetUp) {
  ASSERT_EQ(::mkfifo((dir_.path() / "gate").c_str(), 0600), 0);
  HostIncarnation agent(dir_.path() / "state", with_tool());
  agent.perform(StartRun{.run = kRun, .launch = boxed("echo \"$FROM_IMAGE\"", "registry/far:2")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.setting_up; }));
  std::ofstream gate(dir_.path() / "gate");  // this opens when the pull reads
  agent.on_loop([&] { EXPECT_EQ(agent.host().start_news(kRun).step, "container"); });
  gate << "go\n" << std::flush;
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_FALSE(agent.seen().setting_up);
  agent.on_loop([&] { EXPECT_EQ(agent.host().start_news(kRun).step, ""); });
  EXPECT_EQ(log_of(agent), "pulled\n");
}

TEST_F(ContainerTest, AnImageThatIsNotToBeHadIsTheJobsFault) {
  HostIncarnation agent(dir_.path() / "state", with_tool());
  agent.perform(StartRun{.run = kRun, .launch = boxed("true", "registry/unknown:2")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
  EXPECT_EQ(agent.seen().refused->first, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(
      agent.seen().refused->second,
      "pulling image 'registry/unknown:2': it ended with status 125: Error: manifest unknown");
  EXPECT_EQ(agent.seen().refused_step, "container");
}

TEST_F(ContainerTest, WithoutAToolTheNodeCannot) {
  HostIncarnation agent(dir_.path() / "state",
                        [](HostOptions& options) { options.path = "/nowhere"; });
  agent.perform(StartRun{.run = kRun, .launch = boxed("true")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
  EXPECT_EQ(agent.seen().refused->first, v1::START_FAILURE_NODE);
  EXPECT_EQ(agent.seen().refused->second,
            "looking for podman or docker: there is no podman and no docker on the agent's PATH "
            "'/nowhere'; install podman on this node, name it with the agent's "
            "--container-tool, or leave runtime.image out");
}

TEST_F(ContainerTest, WhatToolSaysInPlaceOfAStart) {
  dir_.write("broken", "");
  HostIncarnation agent(dir_.path() / "state", with_tool());
  agent.perform(StartRun{.run = kRun, .launch = boxed("true")});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
  EXPECT_EQ(agent.seen().refused->first, v1::START_FAILURE_NODE);
  EXPECT_THAT(agent.seen().refused->second, StartsWith("starting container 'muster-c-test-"));
  EXPECT_THAT(
      agent.seen().refused->second,
      HasSubstr(
          "podman ended before the worker in it had claimed the run: Error: runc: no such thing"));
  EXPECT_EQ(agent.seen().refused_step, "spawn");
}

TEST_F(ContainerTest, MountsThatAreNotThereAreNamed) {
  HostIncarnation agent(dir_.path() / "state", with_tool());
  v1::NodeLaunch order = boxed("true");
  v1::ContainerMount& mount = *order.mutable_container()->add_mounts();
  mount.set_source((dir_.path() / "dato").string());
  mount.set_target("/data");
  dir_.write("data/word", "");
  agent.perform(StartRun{.run = kRun, .launch = order});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
  EXPECT_EQ(agent.seen().refused->first, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(agent.seen().refused->second, "mounting '" + (dir_.path() / "dato").string() +
                                              "' at '/data': No such file or directory (is it on a "
                                              "file system that this node sees?); nearest: '" +
                                              (dir_.path() / "data").string() + "'");
}

// Also by a later incarnation of the agent with other options: the record names the tool.
TEST_F(ContainerTest, ItGoesWithARunWhoseWorkerWasKilled) {
  {
    HostIncarnation agent(dir_.path() / "state", with_tool());
    agent.perform(StartRun{.run = kRun, .launch = boxed("exec sleep 1000")});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.started; }));
  }
  HostIncarnation agent(dir_.path() / "state");
  ASSERT_EQ(agent.seen().worker, WorkerState::Alive) << "adopted";
  ::kill(static_cast<pid_t>(agent.seen().worker_pid), SIGKILL);
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Dead; }));
  agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_WORKER_DIED});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_THAT(calls(), HasSubstr("\nrm --force --volumes --ignore muster-c-test-"));
  EXPECT_THAT(agent.troubles(), testing::IsEmpty());
}

TEST_F(ContainerTest, AFileIsLoadedOnce) {
  const std::string image = "file://" + dir_.write("x.tar", "archive").string();
  auto first = ready_image(tool(), image, std::chrono::seconds(20));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->id, "sha256:01");
  EXPECT_THAT(first->env, testing::ElementsAre("FROM_IMAGE=there", "HOME=/image/home"));
  const std::string until_then = calls();
  EXPECT_THAT(until_then, HasSubstr("load --input " + image.substr(7) + "\n"));
  ASSERT_TRUE(ready_image(tool(), image, std::chrono::seconds(20)));
  EXPECT_THAT(calls().substr(until_then.size()), Not(HasSubstr("load")));
  dir_.write("x.tar", "another archive");
  ASSERT_TRUE(ready_image(tool(), image, std::chrono::seconds(20)));
  EXPECT_THAT(calls().substr(until_then.size()), HasSubstr("load")) << "it is another file now";
}

// Two jobs that start at the same time with an image that the node does not have.
TEST_F(ContainerTest, StartsThatWantTheSameImageFetchItOnce) {
  const std::string gate = dir_.path() / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  ImageFetch first, second{.turns = first.turns};
  const auto fetch = [this](const ImageFetch& fetching) {
    return std::async(std::launch::async, [this, &fetching] {
      return ready_image(tool(), "registry/far:2", std::chrono::seconds(60), fetching);
    });
  };
  auto one = fetch(first);
  std::ofstream opened(gate);  // this opens when the pull reads
  auto other = fetch(second);
  while (second.news->text().empty()) std::this_thread::yield();
  EXPECT_EQ(second.news->text(), "fetched by another start");
  first.news->tell("3 of 7 layers");
  EXPECT_EQ(second.news->text(), "3 of 7 layers, fetched by another start");
  opened << "go\n" << std::flush;
  ASSERT_TRUE(one.get());
  ASSERT_TRUE(other.get());
  const std::string all = calls();
  EXPECT_EQ(all.find("pull"), all.rfind("pull")) << all;
  EXPECT_EQ(second.news->text(), "");
}

TEST_F(ContainerTest, AnImageThatAnotherStartCouldNotFetchIsTriedAgain) {
  ImageFetch first, second{.turns = first.turns};
  auto turn = first.turns->take("registry/far:2",
                                system_clock().now().boot + std::chrono::seconds(60), first.news);
  ASSERT_TRUE(turn);
  EXPECT_FALSE(turn->waited());
  const auto late = ready_image(tool(), "registry/far:2", std::chrono::milliseconds(0), second);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::TimedOut);
  EXPECT_EQ(
      late.error().message,
      "waiting for image 'registry/far:2', which another start on this node fetches: it has not "
      "arrived within 0 s; give it longer by runtime.setup.timeout, or kill 'podman pull' "
      "there if it hangs");
  auto other = std::async(std::launch::async, [&] {
    return ready_image(tool(), "registry/far:2", std::chrono::seconds(60), second);
  });
  while (second.news->text().empty()) std::this_thread::yield();
  turn.reset();
  ASSERT_TRUE(other.get());
  EXPECT_THAT(calls(), HasSubstr("\npull registry/far:2\n"));
}

TEST_F(ContainerTest, ARootFileSystemIsImported) {
  auto image = ready_image(tool(), "file://" + dir_.write("root.tar", "root").string(),
                           std::chrono::seconds(20));
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->id, "sha256:99");
  EXPECT_TRUE(image->env.empty());
  const std::string garbage = dir_.write("garbage.tar", "nothing").string();
  image = ready_image(tool(), "file://" + garbage, std::chrono::seconds(20));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(image.error().message,
            "loading image '" + garbage +
                "': as an archive of an image: it ended with status 125: Error: payload does not "
                "match any format; as one of a root file system: it ended with status 125: Error: "
                "invalid tar header");
  image = ready_image(tool(), "file://" + (dir_.path() / "garbag.tar").string(),
                      std::chrono::seconds(20));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::NotFound);
  EXPECT_THAT(image.error().message, HasSubstr("nearest: '" + garbage + "'"));
}

// Otherwise it would be the image of that file from then on.
TEST_F(ContainerTest, AnArchiveThatCouldNotBeLoadedIsNotImported) {
  const auto loaded = [this](const std::string& content) {
    const std::string path = dir_.write("x.tar", content + " root").string();
    auto image = ready_image(tool(), "file://" + path, std::chrono::seconds(20));
    EXPECT_THAT(calls(), Not(HasSubstr("\nimport")));
    return image ? Error{} : image.error();
  };
  const std::string doing = "loading image '" + (dir_.path() / "x.tar").string() + "': ";
  const Error full = loaded("full");
  EXPECT_EQ(full.code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(full.message,
            doing + "it ended with status 125: Error: writing blob: no space left on device");
  EXPECT_EQ(loaded("broken").code, ErrorCode::Io);
  const Error killed = loaded("killed");
  EXPECT_EQ(killed.code, ErrorCode::Io);
  EXPECT_EQ(killed.message, doing + "it was ended by signal 9")
      << "more time would not have helped";
  EXPECT_EQ(loaded("empty").message, doing + "it has none");
}

TEST(ContainerImage, WhatLoadSays) {
  EXPECT_THAT(loaded_images("Getting image source signatures\nLoaded image: localhost/a:1\n"),
              testing::ElementsAre("localhost/a:1"));
  EXPECT_THAT(loaded_images("Loaded image(s): a:1\nLoaded image ID: sha256:0f"),
              testing::ElementsAre("a:1", "sha256:0f"));
  EXPECT_TRUE(loaded_images("Loaded image: \nno\n").empty());
}

TEST(ContainerImage, WhatInspectSays) {
  EXPECT_TRUE(parse_image("sha256:1\nnull\n")->env.empty());
  EXPECT_FALSE(parse_image("sha256:1\n"));
  EXPECT_FALSE(parse_image("\n[]"));
  EXPECT_FALSE(parse_image("sha256:1\n[\"A=1\""));
}

TEST(ContainerTool, ItsEnvironmentIsTheAgentsOwnWithoutItsService) {
  ::setenv("NOTIFY_SOCKET", "/run/n", 1);
  ::setenv("LISTEN_FDS", "1", 1);
  ::setenv("DOCKER_HOST", "unix:///run/d", 1);
  const auto environment = container_tool_environment();
  for (const char* name : {"NOTIFY_SOCKET", "LISTEN_FDS", "DOCKER_HOST"}) ::unsetenv(name);
  EXPECT_THAT(environment, testing::Contains("DOCKER_HOST=unix:///run/d"));
  EXPECT_THAT(
      environment,
      testing::Each(Not(testing::AnyOf(StartsWith("NOTIFY_SOCKET="), StartsWith("LISTEN_FDS=")))));
}

TEST(ContainerTool, TheLastLineWithSomethingInIt) {
  EXPECT_EQ(last_output_line("one\n two\t\n \n\n"), "two");
  EXPECT_EQ(last_output_line("one"), "one");
  EXPECT_EQ(last_output_line("\n\n"), "");
  EXPECT_EQ(last_output_line(std::string(1000, 'x') + "\n").size(), 400U);
}

}  // namespace
}  // namespace muster::agent
