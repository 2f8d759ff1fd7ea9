#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/parse.h"

namespace muster::spec {
namespace {

using testing::ElementsAre;

constexpr const char* kJob = R"yaml(
name: llama
engine: mindformers
code: {at: /srv}
launch: {config: a.yaml, args: --train_dataset_dir /data, patch: {a.yaml: {runner_config.epochs: 2, seed: 1}}}
runtime: {env: {A: "1", B: "2"}, setup: [one, two]}
resources: {nodes: 2, devices: "[0,4)", hosts: [n1, n2]}
resume: none
)yaml";

v1::JobSpec job() {
  Parsed parsed = parse_yaml(kJob, {.base_dir = "/srv"});
  EXPECT_EQ(format(parsed.problems, "job.yaml"), "");
  return parsed.spec;
}

std::string set(v1::JobSpec& spec, const std::vector<std::pair<std::string, std::string>>& over,
                const std::vector<std::pair<std::string, std::string>>& env = {}) {
  return format(set_over(spec, {.base_dir = "/srv", .set = over, .env = env}), "");
}

TEST(SetOver, NothingChangesNothing) {
  v1::JobSpec spec = job();
  EXPECT_EQ(set(spec, {}), "");
  EXPECT_EQ(spec_hash(spec), spec_hash(job()));
}

TEST(SetOver, ListsAndTextsAreReplacedAndMapsGetEntries) {
  v1::JobSpec spec = job();
  EXPECT_EQ(set(spec,
                {{"launch.args", "--epochs 3 --list b.json"},
                 {"resources", "{nodes: 1, hosts: [n3]}"},
                 {"runtime.setup", "three"},
                 {"launch.patch", "{a.yaml: {seed: 7}, b.json: {x: 1}}"},
                 {"resume", "auto"},
                 {"success", "exit0"}},
                {{"B", "3"}}),
            "");
  EXPECT_THAT(spec.launch().args(), ElementsAre("--epochs", "3", "--list", "b.json"));
  EXPECT_EQ(spec.resources().nodes(), 1U);
  EXPECT_THAT(spec.resources().hosts(), ElementsAre("n3"));
  EXPECT_THAT(spec.resources().device_ids(), ElementsAre(0, 1, 2, 3)) << "not named, not touched";
  EXPECT_THAT(spec.runtime().setup(), ElementsAre("three"));
  EXPECT_EQ(spec.runtime().env().at("A"), "1");
  EXPECT_EQ(spec.runtime().env().at("B"), "3");
  ASSERT_EQ(spec.launch().patch_size(), 2);
  ASSERT_EQ(spec.launch().patch(0).changes_size(), 3);
  EXPECT_EQ(spec.launch().patch(0).changes(2).at(), "seed");
  EXPECT_EQ(spec.launch().patch(0).changes(2).value(), "7");
  EXPECT_EQ(spec.launch().patch(1).file(), "b.json");
  EXPECT_TRUE(spec.resume().enabled());
  EXPECT_TRUE(spec.success().exit0());
}

TEST(SetOver, DevicesAsANumberTakeThePlaceOfNamedOnes) {
  v1::JobSpec spec = job();
  EXPECT_EQ(set(spec, {{"resources.devices", "8"}}), "");
  EXPECT_EQ(spec.resources().devices(), 8U);
  EXPECT_EQ(spec.resources().device_ids_size(), 0);
}

TEST(SetOver, EveryProblemIsReported) {
  v1::JobSpec spec = job();
  EXPECT_EQ(set(spec, {{"resource.nodes", "1"}}),
            "resource: unknown key; did you mean 'resources'?\n");
  spec = job();
  EXPECT_EQ(
      set(spec,
          {{"resources.nodes", "none"}, {"launch.args", "--sink_mode False"}, {"resume", "auto"}}),
      "launch.args[0]: without sink mode a later attempt cannot load the ranks' parts of a "
      "checkpoint; leave it out, or start every attempt from the beginning with resume: "
      "none\nresources.nodes: 'none' is not a whole number (1..65536)\n");
}

}  // namespace
}  // namespace muster::spec
