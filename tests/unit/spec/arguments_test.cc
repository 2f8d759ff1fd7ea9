// Arguments of an engine that name data in a store: as ModelArts' tutorials write them.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/spec/parse.h"

namespace muster::spec {
namespace {

using Words = std::vector<std::string>;

Parsed parsed(std::string_view engine, const std::string& args, const std::string& rest = {}) {
  return parse_yaml(
      "name: x\nengine: " + std::string(engine) +
          "\nlaunch: {script: " + (engine == "mindformers" ? "run_mindformer.py" : "train.py") +
          (engine == "mindformers" ? ", config: a.yaml" : "") + ", args: '" + args + "'}\n" + rest,
      {.base_dir = "/home/ada/exp"});
}
Words args_of(const Parsed& spec) {
  return {spec.spec.launch().args().begin(), spec.spec.launch().args().end()};
}
std::map<std::string, std::string> inputs_of(const Parsed& spec) {
  std::map<std::string, std::string> inputs;
  for (const v1::InputSpec& input : spec.spec.inputs()) inputs[input.name()] = input.from();
  return inputs;
}

TEST(Arguments, DataInAStoreBecomesAnInput) {
  const Parsed spec = parsed("mindformers",
                             "--train_dataset_dir obs://bkt/wiki/train --epochs 2 "
                             "--load_checkpoint=obs://bkt/llama.ckpt");
  EXPECT_EQ(format(spec.problems, "job.yaml"), "");
  EXPECT_EQ(args_of(spec), Words({"--train_dataset_dir", "${inputs.train_dataset_dir}", "--epochs",
                                  "2", "--load_checkpoint=${inputs.load_checkpoint}"}));
  EXPECT_EQ(inputs_of(spec),
            (std::map<std::string, std::string>{{"train_dataset_dir", "obs://bkt/wiki/train"},
                                                {"load_checkpoint", "obs://bkt/llama.ckpt"}}));
  v1::JobSpec again = spec.spec;
  EXPECT_TRUE(complete(again, nullptr).empty());
  EXPECT_EQ(again.SerializeAsString(), spec.spec.SerializeAsString()) << "once";
}

TEST(Arguments, OfMegatronTheFilesAndDirectories) {
  const Parsed spec =
      parsed("megatron", "--tokenizer-model s3://bkt/tokenizer.model --load s3://bkt/base");
  EXPECT_EQ(format(spec.problems, "job.yaml"), "");
  EXPECT_EQ(args_of(spec),
            Words({"--tokenizer-model", "${inputs.tokenizer_model}", "--load", "${inputs.load}"}));
}

// --data-path has the beginnings of files' names, with weights between them.
TEST(Arguments, OfBeginningsOfNamesTheDirectoryIsTheInput) {
  const Parsed spec =
      parsed("megatron",
             "--data-path 30 obs://bkt/tokens/wiki_text 70 obs://bkt/tokens/code*_text "
             "obs://other/books_text --split 949,50,1 --valid-data-path=obs://bkt/valid/wiki_text");
  EXPECT_EQ(format(spec.problems, "job.yaml"), "");
  EXPECT_EQ(args_of(spec),
            Words({"--data-path", "30", "${inputs.data_path}/wiki_text", "70",
                   "${inputs.data_path}/code*_text", "${inputs.data_path_2}/books_text", "--split",
                   "949,50,1", "--valid-data-path=${inputs.valid_data_path}/wiki_text"}));
  EXPECT_EQ(inputs_of(spec),
            (std::map<std::string, std::string>{{"data_path", "obs://bkt/tokens"},
                                                {"data_path_2", "obs://other"},
                                                {"valid_data_path", "obs://bkt/valid"}}));
  EXPECT_EQ(Words(spec.spec.inputs(0).include().begin(), spec.spec.inputs(0).include().end()),
            Words({"/wiki_text*", "/code\\*_text*"}));
  v1::JobSpec again = spec.spec;
  EXPECT_TRUE(complete(again, nullptr).empty());
  EXPECT_EQ(again.SerializeAsString(), spec.spec.SerializeAsString()) << "once";
  EXPECT_EQ(args_of(parsed("megatron", "--data-path --load obs://bkt/base")),
            Words({"--data-path", "--load", "${inputs.load}"}));
  EXPECT_EQ(args_of(parsed("megatron", "--data-path obs://bkt/d/text",
                           "inputs: {data_path: {from: obs://bkt/d, include: [x]}}")),
            Words({"--data-path", "${inputs.data_path_2}/text"}))
      << "the user's own input stays as it is";
  EXPECT_EQ(format(parsed("megatron", "--data-path obs://bkt").problems, "job.yaml"),
            "job.yaml:3:34: launch.args[1]: --data-path 'obs://bkt': it names no files; it is the "
            "beginning of their names, without .bin\n");
}

TEST(Arguments, AStartInAStoreIsAnInput) {
  const std::string start = "start: {from: obs://bkt/llama.ckpt}\n";
  const Parsed spec = parsed("mindformers", "--epochs 2", start);
  EXPECT_EQ(format(spec.problems, "job.yaml"), "");
  EXPECT_EQ(inputs_of(spec),
            (std::map<std::string, std::string>{{"start", "obs://bkt/llama.ckpt"}}));
  v1::JobSpec again = spec.spec;
  EXPECT_TRUE(complete(again, nullptr).empty());
  EXPECT_EQ(again.SerializeAsString(), spec.spec.SerializeAsString()) << "once";
  EXPECT_EQ(
      format(parsed("mindformers", "", start + "inputs: {start: /data}").problems, "job.yaml"),
      "job.yaml:4:15: start.from: 'obs://bkt/llama.ckpt' becomes the input 'start', which is "
      "'/data' here; give that input another name\n");
}

TEST(Arguments, PathsAndOtherEnginesStayAsTheyAre) {
  EXPECT_EQ(args_of(parsed("mindformers", "--train_dataset_dir /data/wiki")),
            Words({"--train_dataset_dir", "/data/wiki"}));
  EXPECT_EQ(args_of(parsed("torch", "--train_dataset_dir obs://bkt/wiki")),
            Words({"--train_dataset_dir", "obs://bkt/wiki"}));
}

TEST(Arguments, AnInputOfThatNameMustBeTheSame) {
  const std::string args = "--train_dataset_dir obs://bkt/wiki";
  EXPECT_EQ(
      format(parsed("mindformers", args, "inputs: {train_dataset_dir: obs://bkt/wiki}").problems,
             "job.yaml"),
      "");
  const Parsed other = parsed("mindformers", args, "inputs: {train_dataset_dir: /data/wiki}");
  ASSERT_FALSE(other.problems.empty());
  EXPECT_EQ(other.problems.front().key, "launch.args[1]");
  EXPECT_EQ(other.problems.front().message,
            "--train_dataset_dir 'obs://bkt/wiki': inputs.train_dataset_dir is '/data/wiki'; write "
            "${inputs.train_dataset_dir} here, or give the input another name");
}

TEST(Arguments, AUrlThatIsNoneIsTheArgumentsProblem) {
  const Parsed spec = parsed("mindformers", "--train_dataset_dir obs://bkt/../x");
  ASSERT_FALSE(spec.problems.empty());
  EXPECT_EQ(spec.problems.front().key, "launch.args[1]");
}

}  // namespace
}  // namespace muster::spec
