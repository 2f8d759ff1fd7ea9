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
