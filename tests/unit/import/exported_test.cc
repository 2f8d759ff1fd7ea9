#include "client/import/exported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::import {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Secrets, AreRecognizedByTheirNames) {
  for (const char* name :
       {"HF_TOKEN", "WANDB_API_KEY", "PASSWORD", "db_password", "PGPASSWORD",
        "AWS_SECRET_ACCESS_KEY", "S3_ACCESS_KEY_ID", "HFTOKEN", "SSH_AUTH", "MY_CREDENTIALS",
        "TOKENS", "AK", "OBS_SK", "HUAWEICLOUD_SDK_AK", "MINIO_SECRETKEY"})
    EXPECT_TRUE(seems_secret(name, "x")) << name;
  for (const char* name : {"TOKENIZERS_PARALLELISM", "TOKENIZER", "KEYBOARD", "MONKEY",
                           "NCCL_DEBUG", "AUTHOR", "PASSES", "TASK", "MASK_ID", ""})
    EXPECT_FALSE(seems_secret(name, "x")) << name;
  EXPECT_TRUE(seems_secret("PROXY", "http://me:word@proxy:3128/x"));
  EXPECT_TRUE(seems_secret("PROXY", "a https://x http://me:word@proxy"));
  EXPECT_FALSE(seems_secret("PROXY", "http://proxy:3128/a@b:c"));
  EXPECT_FALSE(seems_secret("AT", "me:word@proxy"));
}

TEST(Exported, IsWhatTheScriptHasChanged) {
  const Variables before = {
      {"PATH", "/usr/bin:/bin"}, {"HOME", "/h"}, {"KEPT", "1"}, {"NNODES", "1"}, {"CHANGED", "1"}};
  const Variables after = {{"PATH", "/tmp/i/bin:/usr/bin:/bin"},
                           {"HOME", "/h"},
                           {"KEPT", "1"},
                           {"CHANGED", "${2}"},
                           {"NEW", "a b"},
                           {"HF_TOKEN", "x"},
                           {"MASTER_ADDR", "h"},
                           {"NNODES", "2"},
                           {"PWD", "/x"},
                           {"_", "/x"},
                           {"SHLVL", "2"},
                           {"MUSTER_IMPORT_DIR", "/tmp/i"},
                           {"BASH_FUNC_torchrun%%", "() {}"},
                           {"BAD", "\xff"},
                           {"BELL", "\x07"},
                           {"HCCL_IF_IP", "10.1"},
                           {"RANK_ID", "3"},
                           {"CUDA_VISIBLE_DEVICES", "0"}};
  const Exported found = exported(before, after, "torch", "/tmp/i/bin");
  EXPECT_THAT(found.kept, UnorderedElementsAre(Pair("CHANGED", "$${2}"), Pair("NEW", "a b")));
  EXPECT_THAT(found.secret, ElementsAre("HF_TOKEN"));
  EXPECT_THAT(found.placed, UnorderedElementsAre("MASTER_ADDR", "NNODES", "HCCL_IF_IP", "RANK_ID",
                                                 "CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(found.unusable, UnorderedElementsAre("BAD", "BELL"));
  const Exported path =
      exported(before, {{"PATH", "/opt/x/bin:/tmp/i/bin:/usr/bin:/bin"}}, "torch", "/tmp/i/bin");
  EXPECT_THAT(path.kept, ElementsAre(Pair("PATH", "/opt/x/bin:/usr/bin:/bin")));
}

// X=$PATH, PYTHON=$(which python3): the directory of the stand-ins is gone when the job runs.
TEST(Exported, NothingOfTheStandInsStays) {
  const Variables after = {{"TOOLS", "/opt/x:/tmp/i/bin:/usr/bin"},
                           {"PYTHON", "/tmp/i/bin/python3"},
                           {"LIBRARIES", ":/opt/lib:"}};
  const Exported found = exported({}, after, "torch", "/tmp/i/bin");
  EXPECT_THAT(found.kept, UnorderedElementsAre(Pair("TOOLS", "/opt/x:/usr/bin"),
                                               Pair("LIBRARIES", ":/opt/lib:")));
  EXPECT_THAT(found.unusable, ElementsAre("PYTHON"));
  // An empty part of a list is the current directory, and not a change by the script.
  EXPECT_THAT(
      exported({{"PATH", ":/usr/bin"}}, {{"PATH", "/tmp/i/bin::/usr/bin"}}, "torch", "/tmp/i/bin")
          .kept,
      IsEmpty());
}

// A variable from which an engine concludes that it is in a cloud would be refused.
TEST(Exported, IsLessWhatTheEngineDoesNotTake) {
  const Variables after = {{"MA_JOB_DIR", "/x"}, {"MS_WORKER_NUM", "8"}};
  EXPECT_THAT(exported({}, after, "mindformers", "").kept, IsEmpty());
  EXPECT_THAT(exported({}, after, "torch", "").kept, ElementsAre(Pair("MA_JOB_DIR", "/x")));
}

TEST(Outside, IsWhatAScriptReadsAndDoesNotSet) {
  const Variables before = {{"DATA", "/d"},  {"OUT", "/o"},    {"LR", "1"},
                            {"HOME", "/h"},  {"PATH", "/bin"}, {"WANDB_API_KEY", "x"},
                            {"NNODES", "2"}, {"i", "9"},       {"QUOTED", "q"}};
  const std::string script =
      "OUT=/mine\nLR=${LR:-2}\nfor i in 1 2; do echo $i; done\n: '$QUOTED'\necho $NNODES "
      "$WANDB_API_KEY $NOT_THERE\ntorchrun train.py --data $DATA --out $OUT "
      "--home $HOME:$PATH\n";
  const Exported found = read_from_outside(script, before, "torch");
  EXPECT_THAT(found.kept, UnorderedElementsAre(Pair("DATA", "/d"), Pair("LR", "1")));
  EXPECT_THAT(found.secret, ElementsAre("WANDB_API_KEY"));
  EXPECT_THAT(found.placed, ElementsAre("NNODES"));
}

}  // namespace
}  // namespace muster::import
