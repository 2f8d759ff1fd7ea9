// Every refusal before a start: its class and its sentence.
#include "agent/start/start_checks.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/launch/spec_keys.h"
#include "agent/saves/checkpoint_reading.h"
#include "agent/start/run_dirs.h"
#include "common/io/room.h"
#include "common/io/unique_fd.h"
#include "tests/support/small_disk.h"
#include "tests/unit/agent_run/support.h"
#include "tests/unit/engine/memory_view.h"

namespace muster::agent {
namespace {

v1::NodeLaunch command(const std::string& cwd, const std::vector<std::string>& argv) {
  v1::NodeLaunch launch;
  v1::RankProcess* rank = launch.add_ranks();
  rank->set_rank(5);
  rank->set_cwd(cwd);
  for (const std::string& word : argv) rank->add_argv(word);
  rank->add_devices(2);
  return launch;
}

TEST(StartChecks, ScriptOfACommandLine) {
  EXPECT_EQ(script_of({"python3", "-u", "train.py", "--x"}), "train.py");
  EXPECT_EQ(script_of({"/usr/bin/python3.11", "-W", "ignore", "-X", "dev", "a/b.py"}), "a/b.py");
  EXPECT_EQ(script_of({"bash", "-e", "-o", "pipefail", "run.sh"}), "run.sh");
  EXPECT_EQ(script_of({"python3", "-m", "torch.distributed.run", "x.py"}), "");
  EXPECT_EQ(script_of({"sh", "-c", "exit 1"}), "");
  EXPECT_EQ(script_of({"bash", "-lc", "exit 1"}), "");
  EXPECT_EQ(script_of({"python3", "-"}), "");
  EXPECT_EQ(script_of({"./trainer", "x.py"}), "");
  EXPECT_EQ(script_of({}), "");
}

TEST(StartChecks, MissingScriptAndDirectory) {
  const TempDir dir;
  auto refusal = check_files(command(dir.path().string(), {"python3", "train.py"}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(refusal->text, "launch.run: '" + (dir.path() / "train.py").string() +
                               "' is not there on this node; name one that is, or put it on a file "
                               "system that every node sees");
  dir.write("train.py", "");
  EXPECT_FALSE(check_files(command(dir.path().string(), {"python3", "train.py"})));
  refusal = check_files(command((dir.path() / "none").string(), {"true"}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text, "launch.cwd, or code.at: '" + (dir.path() / "none").string() +
                               "' is not there on this node; name one that is, or put it on a file "
                               "system that every node sees");
  v1::NodeLaunch made = command((dir.path() / "none").string(), {"true"});
  made.add_make_dirs((dir.path() / "none").string());
  EXPECT_FALSE(check_files(made)) << "it is made before the start";
  EXPECT_TRUE(check_files(command("relative", {"true"})));
  EXPECT_TRUE(check_files(command((dir.path() / "train.py").string(), {"true"})));
  std::filesystem::create_symlink("loop", dir.path() / "loop");
  refusal = check_files(command(dir.path().string(), {"python3", "loop/train.py"}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(refusal->text, "looking for launch.run: '" + (dir.path() / "loop/train.py").string() +
                               "': Too many levels of symbolic links");
}

// The order requires that launch.script's file exists, so the key is named.
TEST(StartChecks, TheKeyOfAFileIsNamed) {
  const TempDir dir;
  dir.write("pretrain_gpt.py", "");
  const std::string script = (dir.path() / "pretran_gpt.py").string();
  v1::NodeLaunch order = command(dir.path().string(), {"python3", "-u", script});
  v1::NeededFile& file = *order.add_needed();
  file.set_source(script);
  file.set_key("launch.script");
  EXPECT_EQ(check_files(order)->text, "launch.script: '" + script +
                                          "' is not there on this node; nearest: '" +
                                          (dir.path() / "pretrain_gpt.py").string() + "'");
  EXPECT_EQ(key_of_program(order, order.ranks(0)), "runtime.python");
  file.set_source((dir.path() / "run.sh").string());
  EXPECT_EQ(key_of_program(command(dir.path().string(), {"./run.sh"}), order.ranks(0)),
            "launch.run");
  order.mutable_ranks(0)->clear_argv();
  order.mutable_ranks(0)->add_argv("./run.sh");
  EXPECT_EQ(key_of_program(order, order.ranks(0)), "launch.script");
  EXPECT_EQ(key_of_program(command("/", {"bash", "-u", "run.sh"}),
                           command("/", {"bash", "-u", "run.sh"}).ranks(0)),
            "launch.run");
}

TEST(StartChecks, DeviceThatIsNotHere) {
  EXPECT_FALSE(check_devices(command("/", {"true"}), {.devices = {0, 1, 2}}));
  const auto refusal = check_devices(command("/", {"true"}), {.devices = {0, 1}});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(refusal->text,
            "starting rank 5: device 2 is not on this node; there are 2 devices: 0 to 1");
}

TEST(StartChecks, UserThatIsNotHere) {
  v1::NodeLaunch launch = command("/", {"true"});
  launch.set_user("no-such-user-here");
  UserEntry user;
  bool set_user = true;
  const auto refusal = check_user(launch, user, set_user);
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->text.find("there is no user 'no-such-user-here'"), std::string::npos);
  launch.clear_user();
  EXPECT_FALSE(check_user(launch, user, set_user));
  EXPECT_FALSE(set_user);
  EXPECT_EQ(user.uid, ::geteuid());
}

TEST(StartChecks, DiskFull) {
  const TempDir dir;
  EXPECT_FALSE(check_room({}, {.state_dir = dir.path(), .min_free_bytes = 1}));
  const auto refusal = check_room({}, {.state_dir = dir.path(), .min_free_bytes = 1ULL << 60U});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_DISK);
  EXPECT_EQ(refusal->text.rfind("disk full: '" + dir.path().string() + "' has ", 0), 0U)
      << refusal->text;
  v1::NodeLaunch launch;
  launch.add_make_dirs((dir.path() / "not/there/yet").string());
  EXPECT_FALSE(check_room(launch, {.state_dir = "/", .min_free_bytes = 1}));
}

// Regression: `df` showed free space, and the start failed with "No space left on device" half-way.
TEST(StartChecks, NoInodesLeft) {
  const TempDir dir;
  const test::SmallDisk disk(dir.path() / "disk", "size=16m,nr_inodes=64");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  const auto place = dir.path() / "disk";
  EXPECT_FALSE(check_room({}, {.state_dir = place, .min_free_bytes = 1 << 20}));
  for (int i = 0; i < 40; ++i) std::ofstream(place / std::to_string(i)) << "x";
  const auto refusal = check_room({}, {.state_dir = place, .min_free_bytes = 1 << 20});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_DISK);
  EXPECT_THAT(refusal->text,
              testing::MatchesRegex("disk full: '.*/disk' has [0-9]+ inodes left \\(df -i\\), a "
                                    "start takes 32, however many bytes are free; remove files "
                                    "that nobody needs"));
  int made = 40;
  while (std::ofstream(place / std::to_string(made)) << "x") ++made;
  EXPECT_EQ(
      io::inodes_text(place / "not" / "there"),
      "; its file system has room, but no inodes left (df -i): remove files that nobody needs");
  EXPECT_EQ(io::inodes_text(dir.path()), "");
}

TEST(StartChecks, PortTaken) {
  const io::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  v1::NodeLaunch launch;
  launch.set_address("127.0.0.1");
  launch.add_ports(ntohs(address.sin_port));
  const auto refusal = check_ports(launch);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, v1::START_FAILURE_PORT);
  EXPECT_NE(refusal->text.find("port " + std::to_string(ntohs(address.sin_port)) +
                               " on '127.0.0.1' is taken"),
            std::string::npos);
  launch.set_address("192.0.2.1");  // reserved for documentation: no node has it
  const auto foreign = check_ports(launch);
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->why, v1::START_FAILURE_NODE) << "another node may have the right address";
  EXPECT_NE(foreign->text.find("--address"), std::string::npos);
}

TEST(LaunchRecord, ProgramsAreFoundOnThePathOfTheirOwnEnvironment) {
  const TempDir dir;
  const auto tool = dir.write("bin/mytool", "#!/bin/sh\n");
  EXPECT_FALSE(resolve_program("mytool", (dir.path() / "bin").string(), "/")) << "not executable";
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  EXPECT_EQ(resolve_program("mytool", "/none:" + (dir.path() / "bin").string(), "/").value(),
            tool.string());
  EXPECT_EQ(resolve_program("bin/mytool", "", dir.path().string()).value(), tool.string());
  EXPECT_EQ(resolve_program("./mytool", "", (dir.path() / "bin").string()).value(), tool.string());
  const auto missing = resolve_program("no-such-tool", "/bin:/usr/bin", "/");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "there is no 'no-such-tool' on PATH '/bin:/usr/bin'");
}

TEST(RunDirs, OutputDirectoriesWithParents) {
  const TempDir dir;
  v1::NodeLaunch launch;
  launch.add_make_dirs((dir.path() / "a/b/c").string());
  launch.add_make_dirs((dir.path() / "a/b").string());
  ASSERT_TRUE(make_output_dirs(launch, nullptr));
  EXPECT_TRUE(std::filesystem::is_directory(dir.path() / "a/b/c"));
  ASSERT_TRUE(make_output_dirs(launch, nullptr)) << "again is no error";
  dir.write("file", "");
  v1::NodeLaunch bad;
  bad.add_make_dirs((dir.path() / "file").string());
  EXPECT_FALSE(make_output_dirs(bad, nullptr));
}

// The least that the layout accepts as a whole archive: one directory entry and the end record.
// `word` makes them different.
std::string shard(const std::string& word) {
  std::string entry("PK\x01\x02", 4), end("PK\x05\x06", 4);
  entry.resize(46);
  end.resize(22);
  end[8] = end[10] = 1;
  end[12] = 46;
  end[16] = static_cast<char>(word.size());
  return word + entry + end;
}

Result<void> make_links(const v1::ResumeLinks& resume) {
  v1::CheckpointReading reading;
  return make_resume_links(resume, nullptr, reading, {});
}

TEST(RunDirs, ResumeLinksHoldTheOneStepAndAreMadeAfresh) {
  const TempDir dir;
  dir.write("save/iter_0000010/mp_rank_00/model_optim_rng.pt", shard("ten"));
  dir.write("save/iter_0000020/mp_rank_00/model_optim_rng.pt", shard("twenty"));
  v1::ResumeLinks resume;
  resume.set_dir((dir.path() / "resume/attempt-2").string());
  resume.set_source((dir.path() / "save").string());
  resume.set_step(20);
  resume.set_layout("megatron");
  for (int again = 0; again < 2; ++again) {
    auto made = make_links(resume);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(read_text(dir.path() / "resume/attempt-2/iter_0000020/mp_rank_00/model_optim_rng.pt"),
              shard("twenty"));
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "resume/attempt-2/iter_0000010"));
    EXPECT_EQ(
        read_text(dir.path() / "resume/attempt-2/latest_checkpointed_iteration.txt").substr(0, 2),
        "20");
    std::filesystem::create_directories(dir.path() / "resume/attempt-2/left by an earlier try");
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path() / "resume"), {}), 1)
      << "nothing is left beside it";
  resume.set_step(30);
  resume.set_given(true);
  const auto wrong = make_links(resume);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(failure_of(wrong.error()), v1::START_FAILURE_LAUNCH)
      << "of start.from, and no other node would have it";
  EXPECT_THAT(wrong.error().message,
              testing::HasSubstr("start.from: '" + resume.source() +
                                 "' holds no checkpoint of step 30 on this node; "));
  resume.set_given(false);
  const auto gone = make_links(resume);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(gone.error().message.find("resuming from step 30 in '" + resume.source() +
                                      "': its checkpoint is not there on this node; "),
            0U)
      << gone.error().message;
  EXPECT_EQ(read_text(dir.path() / "resume/attempt-2/iter_0000020/mp_rank_00/model_optim_rng.pt"),
            shard("twenty"))
      << "the old one stays until the new one is whole";
}

// Regression: their names are not known from the step alone. The directory was made empty, and
// MindFormers silently began anew.
TEST(RunDirs, ResumeLinksOfMindFormersAreReadFromTheFiles) {
  const TempDir dir;
  for (const char* rank : {"0", "1"}) {
    const std::string folder = std::string("save/checkpoint/rank_") + rank + "/";
    dir.write(folder + "llama_7b_rank_" + rank + "_1-2_2.ckpt", engine::ckpt(2, 4));
    dir.write(folder + "llama_7b_rank_" + rank + "-3_2.ckpt", engine::ckpt(3, 6));
  }
  v1::ResumeLinks resume;
  resume.set_dir((dir.path() / "resume").string());
  resume.set_source((dir.path() / "save").string());
  resume.set_step(4);
  resume.set_layout("mindformers");
  const auto made = make_links(resume);
  ASSERT_TRUE(made) << made.error().message;
  for (const char* rank : {"0", "1"}) {
    const auto folder = dir.path() / "resume" / (std::string("rank_") + rank);
    EXPECT_EQ(read_text(folder / (std::string("llama_7b_rank_") + rank + "-2_2.ckpt")),
              engine::ckpt(2, 4));
    EXPECT_NE(read_text(folder / "meta.json").find("\"last_step\": 2"), std::string::npos);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2)
        << "that step alone";
  }
  resume.set_step(8);
  const auto gone = make_links(resume);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(gone.error().message.find("resuming from step 8 in '" + resume.source() +
                                      "': its checkpoint is not there on this node; "),
            0U)
      << gone.error().message;
}

// For a job over two nodes, the second node's directory has only rank_2 and rank_3; it is not torn
// there.
TEST(RunDirs, WhereEachNodeHasItsOwnDiskOnlyItsOwnRanksHaveToBeWhole) {
  const TempDir dir;
  const auto write = [&](const std::string& rank, const std::string& bytes) {
    dir.write("save/checkpoint/rank_" + rank + "/llama_7b_rank_" + rank + "-2_2.ckpt", bytes);
  };
  write("2", engine::ckpt(2, 4));
  write("3", engine::ckpt(2, 4));
  v1::ResumeLinks resume;
  resume.set_dir((dir.path() / "resume").string());
  resume.set_source((dir.path() / "save").string());
  resume.set_step(4);
  resume.set_layout("mindformers");
  EXPECT_THAT(make_links(resume).error().message,
              testing::HasSubstr("torn: 2 of its 4 shards are whole"));
  resume.set_first_rank(2);
  resume.set_ranks(2);
  const auto made = make_links(resume);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(read_text(dir.path() / "resume/rank_3/llama_7b_rank_3-2_2.ckpt"), engine::ckpt(2, 4));
  write("3", engine::ckpt(2, 4).substr(0, 10));
  EXPECT_THAT(make_links(resume).error().message,
              testing::HasSubstr("torn: 1 of its 2 shards are whole"));
  resume.set_first_rank(1);
  EXPECT_THAT(make_links(resume).error().message,
              testing::HasSubstr("torn: 1 of its 2 shards are whole"))
      << "rank_1 is not there at all";
}

// Regression: the whole checkpoint had four shards. With checkpoint.storage: local this node has
// the two of its own pipeline stage, and it was reported that the checkpoint is torn.
TEST(RunDirs, WhereEachNodeHasItsOwnDiskPartOfTheShardsIsThere) {
  const TempDir dir;
  for (const char* part : {"00_001", "01_001"})
    dir.write(std::string("save/iter_0000020/mp_rank_") + part + "/model_optim_rng.pt", shard("x"));
  v1::ResumeLinks resume;
  resume.set_dir((dir.path() / "resume").string());
  resume.set_source((dir.path() / "save").string());
  resume.set_step(20);
  resume.set_layout("megatron");
  resume.set_shards(4);
  EXPECT_THAT(
      make_links(resume).error().message,
      testing::HasSubstr(
          "torn: 2 of its 4 shards are whole; not there: 2; keep checkpoints on a file system that "
          "every node sees, or say checkpoint.storage: local"));
  resume.set_first_rank(8);
  resume.set_ranks(8);
  const auto made = make_links(resume);
  ASSERT_TRUE(made) << made.error().message;
  dir.write("save/iter_0000020/mp_rank_01_001/model_optim_rng.pt", shard("x").substr(0, 40));
  EXPECT_THAT(
      make_links(resume).error().message,
      testing::HasSubstr("torn: 1 of its 2 shards are whole; short or damaged: mp_rank_01_001"));
}

// Regression: a checkpoint became torn between its choice and the start. Every rank failed to load
// it, attempt after attempt.
TEST(RunDirs, ATornCheckpointIsNotResumedFrom) {
  const TempDir dir;
  v1::ResumeLinks resume;
  resume.set_dir((dir.path() / "resume/attempt-2").string());
  resume.set_source((dir.path() / "save").string());
  resume.set_step(10);
  resume.set_layout("megatron");
  for (int step : {10, 20, 30, 40}) {
    for (const char* part : {"00", "01"})
      dir.write(
          "save/iter_00000" + std::to_string(step) + "/mp_rank_" + part + "/model_optim_rng.pt",
          shard("x"));
  }
  EXPECT_TRUE(make_links(resume))
      << "not among the newest, and no tracker: the ended attempt may have torn it";
  dir.write("save/iter_0000010/mp_rank_01/model_optim_rng.pt", shard("x").substr(0, 40));
  const auto torn = make_links(resume);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, ErrorCode::DataLoss);
  EXPECT_NE(torn.error().message.find("step 10 in '" + resume.source() +
                                      "': its checkpoint is torn: 1 of its 2 shards are whole"),
            std::string::npos)
      << torn.error().message;
  resume.set_step(20);
  dir.write("save/latest_checkpointed_iteration.txt", "40");
  std::filesystem::remove_all(dir.path() / "save/iter_0000020/mp_rank_00");
  EXPECT_TRUE(make_links(resume).error().message.find("1 of its 2 shards") != std::string::npos)
      << "as many as its neighbours have";
}

// A node reports which shards it has read and found torn, so that the controller can continue from
// an older step. A node that could not read reports nothing about the checkpoint.
class ResumeReading : public testing::Test {
 protected:
  void SetUp() override {
    resume_.set_dir((dir_.path() / "resume/attempt-2").string());
    resume_.set_source((dir_.path() / "save").string());
    resume_.set_step(20);
    resume_.set_layout("megatron");
    for (const char* step : {"10", "20"})
      for (const char* part : {"00", "01"}) dir_.write(file(step, part), shard("x"));
    dir_.write("save/latest_checkpointed_iteration.txt", "20");
  }
  static std::string file(const std::string& step, const std::string& part) {
    return "save/iter_00000" + step + "/mp_rank_" + part + "/model_optim_rng.pt";
  }
  Result<void> make() {
    reading_.Clear();
    return make_resume_links(resume_, nullptr, reading_, {});
  }

  const TempDir dir_;
  v1::ResumeLinks resume_;
  v1::CheckpointReading reading_;
};

TEST_F(ResumeReading, NamesWhatItHasReadAndFoundTorn) {
  for (const std::string& bytes : {shard("x").substr(0, 40), std::string()}) {
    dir_.write(file("20", "01"), bytes);
    const auto torn = make();
    ASSERT_FALSE(torn);
    EXPECT_THAT(torn.error().message,
                testing::EndsWith("': its checkpoint is torn: 1 of its 2 shards are whole; short "
                                  "or damaged: mp_rank_01"));
    ASSERT_EQ(reading_.torn_size(), 1);
    EXPECT_EQ(reading_.torn(0), "mp_rank_01");
    EXPECT_EQ(reading_.there(), 2U);
    EXPECT_EQ(reading_.needed(), 2U);
  }
  resume_.set_given(true);
  const auto given = make();
  ASSERT_FALSE(given);
  EXPECT_EQ(failure_of(given.error()), v1::START_FAILURE_LAUNCH)
      << "a person has named it: refused, and nothing else is tried";
  EXPECT_EQ(
      given.error().message.find("start.from: the checkpoint of step 20 in '" + resume_.source() +
                                 "' is torn: 1 of its 2 shards are whole; "),
      0U)
      << given.error().message;
  EXPECT_EQ(reading_.needed(), 0U);
}

TEST_F(ResumeReading, AShardThatIsNotNextToTheOthersIsNamedWithThem) {
  std::filesystem::remove_all(dir_.path() / "save/iter_0000020/mp_rank_00");
  ASSERT_FALSE(make());
  EXPECT_EQ(reading_.torn_size(), 0);
  EXPECT_EQ(reading_.there(), 1U);
  EXPECT_EQ(reading_.needed(), 2U);
  const std::string names = reading_.names_sha256();
  std::filesystem::rename(dir_.path() / "save/iter_0000020/mp_rank_01",
                          dir_.path() / "save/iter_0000020/mp_rank_00");
  ASSERT_FALSE(make());
  EXPECT_NE(reading_.names_sha256(), names) << "another node's disk, which has another one";
  std::filesystem::remove_all(dir_.path() / "save/iter_0000020");
  const auto gone = make();
  EXPECT_EQ(failure_of(gone.error()), v1::START_FAILURE_NODE);
  EXPECT_EQ(reading_.needed(), 0U) << "not there at all: of the checkpoint that says nothing";
}

// Regression: mp_rank_01 was missing in every step, so the neighbors agreed on one shard, and
// training resumed from half of the weights.
TEST_F(ResumeReading, TheCountOfWhenItWasWholeGoesBeforeItsNeighbours) {
  for (const char* step : {"10", "20"})
    std::filesystem::remove_all(dir_.path() / "save" / (std::string("iter_00000") + step) /
                                "mp_rank_01");
  EXPECT_TRUE(make()) << "where nobody knows how many there were";
  resume_.set_shards(2);
  ASSERT_FALSE(make());
  EXPECT_EQ(reading_.needed(), 2U);
}

TEST_F(ResumeReading, OfMindFormersAsWell) {
  const auto write = [&](const std::string& rank, const std::string& sink,
                         const std::string& bytes) {
    dir_.write("mf/checkpoint/rank_" + rank + "/llama_7b_rank_" + rank + "-" + sink + "_2.ckpt",
               bytes);
  };
  for (const char* rank : {"0", "1"})
    for (const int sink : {1, 2}) write(rank, std::to_string(sink), engine::ckpt(sink, 2 * sink));
  resume_.set_source((dir_.path() / "mf").string());
  resume_.set_layout("mindformers");
  resume_.set_step(4);
  resume_.set_shards(2);
  ASSERT_TRUE(make());
  for (const std::string& bytes : {engine::ckpt(2, 4).substr(0, 100), std::string()}) {
    write("1", "2", bytes);
    ASSERT_FALSE(make());
    ASSERT_EQ(reading_.torn_size(), 1);
    EXPECT_EQ(reading_.torn(0), "rank_1");
    EXPECT_EQ(reading_.there(), 2U);
  }
  std::filesystem::remove_all(dir_.path() / "mf/checkpoint/rank_1");
  ASSERT_FALSE(make()) << "the highest rank's: what is left looks like a job of one";
  EXPECT_EQ(reading_.there(), 1U);
  EXPECT_EQ(reading_.needed(), 2U);
}

TEST_F(ResumeReading, WhatCannotBeReadIsTheNodesTroubleAlone) {
  const auto model = dir_.path() / file("20", "01");
  std::filesystem::remove(model);
  // ELOOP, like ESTALE and EIO, shows nothing about what exists.
  std::filesystem::create_symlink(model.filename(), model);
  auto unread = make();
  ASSERT_FALSE(unread);
  EXPECT_EQ(failure_of(unread.error()), v1::START_FAILURE_NODE);
  EXPECT_EQ(unread.error().message, "resuming from step 20 in '" + resume_.source() +
                                        "': reading '" + model.string() +
                                        "': Too many levels of symbolic links; this node cannot "
                                        "determine whether its checkpoint is whole");
  EXPECT_EQ(reading_.needed(), 0U);
  resume_.set_given(true);
  EXPECT_EQ(failure_of(make().error()), v1::START_FAILURE_NODE);
}

// --ckpt-format torch_dcp uses its tracker as a mark. Regression: the attempt that ended was
// writing it, and every checkpoint seemed torn.
TEST_F(ResumeReading, ATornTrackerDoesNotTearWhatItReachedBefore) {
  dir_.write("save/iter_0000030/.metadata", "m");
  dir_.write("save/iter_0000030/__0_0.distcp", "d");
  dir_.write("save/latest_checkpointed_iteration.txt", "");
  resume_.set_step(30);
  EXPECT_TRUE(make()) << "the controller took it for whole when the tracker had reached it";
  resume_.set_given(true);
  EXPECT_FALSE(make()) << "of this one nobody did";
}

// Regression: the journal's end was lost, with records of checkpoints. Training began anew,
// although whole steps were on the disk.
TEST(ScanFirst, FindsWholeCheckpointsOfEarlierAttempts) {
  const TempDir dir;
  const auto save = [&](const std::string& attempt, const std::string& step,
                        const std::string& bytes) {
    dir.write("checkpoints/" + attempt + "/iter_00000" + step + "/mp_rank_00/model_optim_rng.pt",
              bytes);
    dir.write("checkpoints/" + attempt + "/latest_checkpointed_iteration.txt", step);
  };
  save("attempt-1", "10", shard("x"));
  save("attempt-2", "20", shard("x"));
  save("attempt-2", "30", shard("x"));
  save("attempt-3", "40", shard("x").substr(0, 40));
  save("attempt-9", "50", shard("x"));
  save("attempt-x", "60", shard("x"));
  v1::NodeLaunch order;
  order.set_attempt(9);
  order.mutable_watching()->set_layout("megatron");
  order.mutable_scan_first()->set_dir((dir.path() / "checkpoints").string());
  order.mutable_scan_first()->set_beyond(10);
  v1::CheckpointReading reading;
  EXPECT_EQ(find_newer(order, reading),
            "looking for checkpoints that the journal has lost: '" + order.scan_first().dir() +
                "' holds step 30 of attempt 2, whole and newer than step 10");
  ASSERT_EQ(reading.found_size(), 2);
  EXPECT_EQ(reading.found(0).attempt(), 2U);
  EXPECT_EQ(reading.found(0).step(), 30);
  EXPECT_EQ(reading.found(0).path(), (dir.path() / "checkpoints/attempt-2/iter_0000030").string());
  EXPECT_EQ(reading.found(0).shards(), 1U);
  EXPECT_EQ(reading.found(0).bytes(), shard("x").size());
  EXPECT_EQ(reading.found(1).step(), 20);
  reading.Clear();
  order.mutable_scan_first()->set_beyond(30);
  EXPECT_EQ(find_newer(order, reading), "");
  order.mutable_scan_first()->clear_beyond();
  order.mutable_watching()->set_shards(2);
  EXPECT_EQ(find_newer(order, reading), "") << "half of each is missing, in all of them alike";
}

}  // namespace
}  // namespace muster::agent
