// URLs of stores in a configuration, as tutorials for ModelArts write them.
#include "client/commands/job/config_urls.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/spec/parse.h"

namespace muster::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class ConfigUrls : public testing::Test {
 protected:
  ConfigUrls() {
    std::string made = (std::filesystem::temp_directory_path() / "muster-config-XXXXXX").string();
    dir_ = mkdtemp(made.data());
  }
  ~ConfigUrls() override { std::filesystem::remove_all(dir_); }
  v1::JobSpec taken(const std::string& config, const std::string& patch = "{}",
                    const std::string& engine = "mindformers") {
    std::ofstream(dir_ / "a.yaml") << config;
    spec::Parsed parsed = spec::parse_yaml(
        "name: x\nengine: " + engine +
            "\nlaunch: {script: run_mindformer.py, config: a.yaml, patch: " + patch + "}",
        {.base_dir = dir_.string()});
    EXPECT_THAT(parsed.problems, IsEmpty()) << spec::format(parsed.problems, "x");
    take_config_urls(parsed.spec);
    return parsed.spec;
  }
  static std::map<std::string, std::string> inputs(const v1::JobSpec& spec) {
    std::map<std::string, std::string> out;
    for (const v1::InputSpec& input : spec.inputs()) out[input.name()] = input.from();
    return out;
  }
  static std::map<std::string, std::string> changes(const v1::JobSpec& spec) {
    std::map<std::string, std::string> out;
    for (const v1::ConfigPatch& file : spec.launch().patch())
      for (const v1::ConfigChange& change : file.changes())
        out[file.file() + ": " + change.at()] = change.value();
    return out;
  }
  std::filesystem::path dir_;
};

TEST_F(ConfigUrls, WhatTheEngineReadsBecomesAnInput) {
  const v1::JobSpec spec = taken(
      "load_checkpoint: 'obs://bkt/llama.ckpt'\n"
      "train_dataset: {data_loader: {dataset_dir: obs://bkt/wiki, shuffle: true}}\n"
      "eval_dataset: {data_loader: {dataset_dir: obs://bkt/eval}}\n"
      "processors: [{tokenizer: {vocab_file: obs://bkt/llama.ckpt}}]\n"
      "output_dir: ./output\n");
  EXPECT_THAT(inputs(spec), UnorderedElementsAre(Pair("load_checkpoint", "obs://bkt/llama.ckpt"),
                                                 Pair("dataset_dir", "obs://bkt/wiki"),
                                                 Pair("dataset_dir_2", "obs://bkt/eval")));
  EXPECT_THAT(
      changes(spec),
      UnorderedElementsAre(
          Pair("a.yaml: load_checkpoint", "\"${inputs.load_checkpoint}\""),
          Pair("a.yaml: train_dataset.data_loader.dataset_dir", "\"${inputs.dataset_dir}\""),
          Pair("a.yaml: eval_dataset.data_loader.dataset_dir", "\"${inputs.dataset_dir_2}\""),
          Pair("a.yaml: processors[0].tokenizer.vocab_file", "\"${inputs.load_checkpoint}\"")));
  EXPECT_THAT(config_url_notes(spec), IsEmpty());
  v1::JobSpec again = spec;
  take_config_urls(again);
  EXPECT_EQ(again.SerializeAsString(), spec.SerializeAsString()) << "once";
  EXPECT_THAT(spec::complete(again, nullptr), IsEmpty());
}

TEST_F(ConfigUrls, OtherPlacesAreNamed) {
  const v1::JobSpec spec = taken("x: {y.z: [s3://bkt/c], remote_save_url: obs://bkt/out}\n");
  EXPECT_THAT(inputs(spec), IsEmpty());
  EXPECT_THAT(
      config_url_notes(spec),
      ElementsAre("launch.config 'a.yaml': x.y\\.z[0] is 's3://bkt/c', in object storage: muster "
                  "copies nothing from or to it",
                  "launch.config 'a.yaml': x.remote_save_url is 'obs://bkt/out', in object "
                  "storage: muster copies nothing from or to it"));
  EXPECT_EQ(spec.outputs().to(), "");
}

TEST_F(ConfigUrls, WhereOutputsGoIsTakenOut) {
  v1::JobSpec spec = taken("remote_save_url: obs://bkt/out\n");
  EXPECT_EQ(spec.outputs().to(), "obs://bkt/out");
  EXPECT_THAT(changes(spec), ElementsAre(Pair("a.yaml: remote_save_url", "null")));
  EXPECT_THAT(config_url_notes(spec), IsEmpty());
  take_config_urls(spec);
  EXPECT_THAT(changes(spec), testing::SizeIs(1)) << "once";
  spec.mutable_outputs()->set_to("obs://bkt/other");
  spec.mutable_launch()->clear_patch();
  take_config_urls(spec);
  EXPECT_EQ(spec.outputs().to(), "obs://bkt/other") << "the user's own word counts";
  EXPECT_THAT(config_url_notes(spec),
              ElementsAre("launch.config 'a.yaml': remote_save_url is 'obs://bkt/out': muster "
                          "copies outputs to 'obs://bkt/other' alone (outputs.to)"));
}

TEST_F(ConfigUrls, AUrlThatIsNoneIsNamed) {
  const v1::JobSpec spec = taken("load_checkpoint: obs://bkt/../a\n");
  EXPECT_THAT(inputs(spec), IsEmpty());
  EXPECT_THAT(config_url_notes(spec),
              ElementsAre(testing::StartsWith(
                  "launch.config 'a.yaml': load_checkpoint is 'obs://bkt/../a': ")));
}

TEST_F(ConfigUrls, WhatLaunchPatchSetsStays) {
  const v1::JobSpec spec =
      taken("load_checkpoint: obs://bkt/a\n", "{a.yaml: {load_checkpoint: /data/a.ckpt}}");
  EXPECT_THAT(inputs(spec), IsEmpty());
  EXPECT_THAT(changes(spec), ElementsAre(Pair("a.yaml: load_checkpoint", "/data/a.ckpt")));
  EXPECT_THAT(config_url_notes(spec), IsEmpty());
}

// Regression: a change of what is around the value, or of it under another name, was overruled.
TEST_F(ConfigUrls, AnyFormOfAChangeStays) {
  const std::string config =
      "train: &t {loader: {dataset_dir: obs://bkt/a, n: 1}}\ntask: {train: *t}\n";
  for (const char* patch :
       {"{a.yaml: {train.loader: {dataset_dir: /data}}}",
        "{a.yaml: {task.train.loader.dataset_dir: /data}}", "{a.yaml: {train.loader: null}}",
        "{./a.yaml: {train.loader.dataset_dir: /data}}"})
    EXPECT_THAT(inputs(taken(config, patch)), IsEmpty()) << patch;
  const v1::JobSpec spec = taken(config, "{./a.yaml: {train.loader.n: 2, x.y: 1}}");
  EXPECT_THAT(inputs(spec), IsEmpty()) << "there is no x: reported elsewhere";
  const v1::JobSpec other =
      taken(config, "{./a.yaml: {train.loader.n: 2, train.loader.vocab_file: obs://bkt/v}}");
  EXPECT_THAT(inputs(other), UnorderedElementsAre(Pair("dataset_dir", "obs://bkt/a"),
                                                  Pair("vocab_file", "obs://bkt/v")));
  EXPECT_EQ(other.launch().patch_size(), 1);
}

// Regression: only the place of the anchor was looked at.
TEST_F(ConfigUrls, AnAliasOfAValueIsAPlaceOfItsOwn) {
  const v1::JobSpec spec = taken("url: &u obs://bkt/a\nx: {dataset_dir: *u}\n");
  EXPECT_THAT(changes(spec),
              ElementsAre(Pair("a.yaml: x.dataset_dir", "\"${inputs.dataset_dir}\"")));
}

TEST_F(ConfigUrls, SharedValuesAreOnePlace) {
  std::string config = "a0: &a0 {load_checkpoint: obs://bkt/c}\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    config += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
              "]\n";
  }
  const v1::JobSpec spec = taken(config);
  EXPECT_THAT(changes(spec),
              ElementsAre(Pair("a.yaml: a0.load_checkpoint", "\"${inputs.load_checkpoint}\"")));
}

TEST_F(ConfigUrls, WhatIsNoConfigurationIsLeft) {
  for (const char* text : {"", "[", "just text", "load_checkpoint: [", "null"})
    EXPECT_THAT(inputs(taken(text)), IsEmpty()) << text;
}

}  // namespace
}  // namespace muster::client
