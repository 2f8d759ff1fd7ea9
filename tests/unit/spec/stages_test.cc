// Chains: what a stage inherits, the order of stages, and what stages know of each other.
// tests/golden/spec-errors.txt has what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/explain.h"
#include "common/spec/parse.h"
#include "common/spec/schema.h"
#include "common/spec/stage_order.h"

namespace muster::spec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Parsed sound_chain(std::string_view text, ParseOptions options = {.base_dir = "/home/ada/exp"}) {
  Parsed parsed = parse_yaml(text, options);
  EXPECT_EQ(format(parsed.problems, "job.yaml"), "");
  return parsed;
}

std::vector<std::string> names_of(const Parsed& parsed) {
  std::vector<std::string> found;
  for (const v1::JobSpec& stage : parsed.stages) found.push_back(stage.name());
  return found;
}
std::vector<std::string> after_of(const v1::JobSpec& spec) {
  return {spec.schedule().after().begin(), spec.schedule().after().end()};
}

constexpr std::string_view kChainHead =
    "name: c\nengine: torch\nlaunch: {script: a.py, args: {lr: 1, size: 2}}\nruntime: {env: {A: "
    "top, B: top}}\n";

TEST(Stages, InheritTheTopLevelKeyByKey) {
  const Parsed parsed =
      sound_chain(std::string(kChainHead) +
                  "resources: {nodes: 2, devices: [0, 1], hosts: [n0, n1]}\nsuccess: {regex: x}\n"
                  "stages:\n"
                  "  one:\n"
                  "  two:\n"
                  "    launch: {args: {size: 3, more: true}}\n"
                  "    runtime: {env: {B: own, C: own}}\n"
                  "    resources: {nodes: 1, hosts: [n2]}\n"
                  "    success: exit0\n"
                  "  three: {engine: command, launch: {run: make it}, code: {at: /opt}, resources: "
                  "{hosts: null}}\n");
  ASSERT_EQ(parsed.stages.size(), 3u);
  EXPECT_EQ(parsed.spec.name(), "c");
  const v1::JobSpec &one = parsed.stages[0], &two = parsed.stages[1], &three = parsed.stages[2];
  EXPECT_EQ(one.name(), "c.one");
  EXPECT_EQ(one.stage().name(), "one");
  EXPECT_EQ(one.stage().chain_name(), "c");
  EXPECT_EQ(one.success().regex(), "x");
  EXPECT_EQ(one.code().at(), "/home/ada/exp");
  EXPECT_THAT(two.launch().args(), ElementsAre("--lr", "1", "--size", "3", "--more"));
  EXPECT_EQ(two.runtime().env().at("A"), "top");
  EXPECT_EQ(two.runtime().env().at("B"), "own");
  EXPECT_EQ(two.runtime().env().at("C"), "own");
  EXPECT_EQ(two.resources().nodes(), 1u);
  EXPECT_THAT(two.resources().device_ids(), ElementsAre(0u, 1u));
  EXPECT_THAT(two.resources().hosts(), ElementsAre("n2"));
  EXPECT_TRUE(two.success().exit0());
  EXPECT_EQ(three.launch().script(), "") << "launch.run is the whole command";
  EXPECT_THAT(three.launch().run(), ElementsAre("make", "it"));
  EXPECT_THAT(three.resources().hosts(), IsEmpty());
  EXPECT_EQ(three.code().at(), "/opt");
}

TEST(Stages, ComeBehindThoseThatTheyName) {
  const Parsed parsed = sound_chain(std::string(kChainHead) +
                                    "schedule: {after: [earlier]}\n"
                                    "stages:\n"
                                    "  last: {after: [b, a]}\n"
                                    "  a: {after: []}\n"
                                    "  b: {}\n"
                                    "  alone: {after: [], schedule: {after: other}}\n"
                                    "  end: {after: alone, schedule: {after: third}}\n");
  EXPECT_THAT(names_of(parsed), ElementsAre("c.a", "c.b", "c.last", "c.alone", "c.end"));
  for (std::uint32_t i = 0; i < parsed.stages.size(); ++i) {
    EXPECT_EQ(parsed.stages[i].stage().number(), i + 1) << "in the order in which they run";
    EXPECT_EQ(parsed.stages[i].stage().count(), 5u);
  }
  EXPECT_THAT(after_of(parsed.stages[0]), ElementsAre("earlier"));
  EXPECT_THAT(after_of(parsed.stages[1]), ElementsAre("stage:a"));
  EXPECT_THAT(after_of(parsed.stages[2]), ElementsAre("stage:b", "stage:a"));
  EXPECT_THAT(after_of(parsed.stages[3]), ElementsAre("other"));
  EXPECT_THAT(after_of(parsed.stages[4]), ElementsAre("third", "stage:alone"));
}

TEST(Stages, TakeFromThoseBeforeThem) {
  const Parsed parsed = sound_chain(std::string(kChainHead) +
                                    "stages:\n"
                                    "  a: {creates: tokens}\n"
                                    "  b: {inputs: {x: 'stage:a/tokens', y: data, z: {from: "
                                    "'job:j/out', env: Z}}, success: exit0, creates: '${out}/y'}\n"
                                    "  c: {runtime: {env: {FROM: '${stages.a.out}/tokens'}}, "
                                    "start: {from: 'stage:b', as: resume, step: 7}}\n");
  ASSERT_EQ(parsed.stages.size(), 3u);
  EXPECT_EQ(parsed.stages[0].success().file(), "tokens") << "what it creates is its success";
  EXPECT_EQ(parsed.stages[0].stage().creates(), "tokens");
  EXPECT_TRUE(parsed.stages[1].success().exit0());
  EXPECT_EQ(parsed.stages[1].stage().creates(), "${out}/y");
  ASSERT_EQ(parsed.stages[1].inputs_size(), 3);
  EXPECT_EQ(parsed.stages[1].inputs(0).from(), "stage:a/tokens");
  EXPECT_EQ(parsed.stages[1].inputs(1).from(), "/home/ada/exp/data");
  EXPECT_EQ(parsed.stages[1].inputs(2).env(), "Z");
  EXPECT_EQ(parsed.stages[2].start().from(), "stage:b");
  EXPECT_EQ(parsed.stages[2].start().as(), v1::START_AS_RESUME);
  EXPECT_EQ(parsed.stages[2].start().step(), 7);
}

TEST(Stages, CreatesIsTheSuccessUnlessTheStageHasItsOwn) {
  const Parsed parsed = sound_chain(std::string(kChainHead) +
                                    "success: {regex: all}\nstages: {a: {creates: x}, b: {creates: "
                                    "null}, c: {creates: y, success: {regex: own}}}\n");
  EXPECT_EQ(parsed.stages[0].success().file(), "x");
  EXPECT_EQ(parsed.stages[1].success().regex(), "all");
  EXPECT_EQ(parsed.stages[2].success().regex(), "own");
}

TEST(Stages, OverridesReachAllThatInherit) {
  const std::string text =
      std::string(kChainHead) +
      "stages: {a: {}, b: {resources: {nodes: 3}}, c: {runtime: {env: {A: own}}}}\n";
  const Parsed parsed = sound_chain(text, {.base_dir = "/w",
                                           .set = {{"resources.nodes", "4"},
                                                   {"stages.c.resources.devices", "1"},
                                                   {"stages.c.labels.x.y", "z"}},
                                           .env = {{"A", "given"}}});
  EXPECT_EQ(parsed.stages[0].resources().nodes(), 4u);
  EXPECT_EQ(parsed.stages[1].resources().nodes(), 3u);
  EXPECT_EQ(parsed.stages[2].resources().nodes(), 4u);
  EXPECT_EQ(parsed.stages[2].resources().devices(), 1u);
  EXPECT_EQ(parsed.stages[2].labels().at("x.y"), "z");
  EXPECT_EQ(parsed.stages[0].runtime().env().at("A"), "given");
  EXPECT_EQ(parsed.stages[2].runtime().env().at("A"), "own");
}

TEST(Stages, NoneIsNoChain) {
  for (const char* none : {"stages:\n", "stages: {}\n", ""}) {
    const Parsed parsed = sound_chain(std::string(kChainHead) + none);
    EXPECT_TRUE(parsed.stages.empty());
    EXPECT_EQ(parsed.spec.engine(), "torch");
    EXPECT_FALSE(parsed.spec.has_stage());
  }
}

TEST(Stages, AreAsSoundForTheController) {
  for (v1::JobSpec stage :
       sound_chain(std::string(kChainHead) + "stages: {a: {creates: x}, b: {}}\n").stages) {
    const std::string before = spec_hash(stage);
    EXPECT_EQ(format(complete(stage), "x"), "");
    EXPECT_EQ(spec_hash(stage), before);
    stage.mutable_stage()->set_name("other");
    stage.mutable_stage()->set_key("123");
    EXPECT_EQ(format(complete(stage), "x"),
              "stage.chain_name: stage 'other' of chain 'c' is a job 'c.other', not '" +
                  stage.name() + "'\nstage.key: is no SHA-256 (64 hexadecimal digits)\n");
  }
}

TEST(Start, IsNothingWhereItNamesNothing) {
  const auto spec = [](const std::string& more) {
    return sound_chain(std::string(kChainHead) + more).spec;
  };
  EXPECT_FALSE(spec("start: {from: none}\n").has_start());
  EXPECT_FALSE(spec("start: {from: none, as: resume}\n").has_start())
      << "a stage that takes back what it inherits";
  EXPECT_FALSE(spec("start: {}\n").has_start());
  const v1::JobSpec full = spec("resume: {args: --x}\nstart: {from: /ckpt, as: resume, step: 3}\n");
  EXPECT_EQ(full.start().from(), "/ckpt");
  EXPECT_EQ(full.start().as(), v1::START_AS_RESUME);
  EXPECT_EQ(full.start().step(), 3);
  const Parsed weights = parse_yaml(
      "name: x\nengine: megatron\nlaunch: {script: a.py, args: --load x}\nstart: {from: /ckpt}\n",
      {.base_dir = "/w"});
  EXPECT_EQ(weights.spec.start().as(), v1::START_AS_WEIGHTS);
  EXPECT_FALSE(weights.spec.start().has_step());
}

TEST(StageOrder, KeepsTheOrderOfTheSpecAsFarAsItCan) {
  EXPECT_THAT(order_stages({{}, {}, {}}).order, ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(order_stages({{2}, {0}, {}, {1}}).order, ElementsAre(2u, 0u, 1u, 3u));
  const StageOrder round = order_stages({{}, {0, 3}, {1}, {2}, {3}});
  EXPECT_THAT(round.order, ElementsAre(0u));
  EXPECT_THAT(round.cycle, ElementsAre(1u, 2u, 3u, 1u));
  const auto before = stages_before({{}, {0}, {1}, {}}, {0, 1, 2, 3});
  EXPECT_THAT(before[2], ElementsAre(0u, 1u));
  EXPECT_THAT(before[3], IsEmpty());
}

// A stage has the keys of the top level but two, and two of its own, whose default may be words.
TEST(StageSchema, IsThatOfTheTopLevelAndTwoKeys) {
  const Schema schema = Schema::parse(json_schema());
  const Schema& chain = schema["properties"]["stages"]["anyOf"][0]["additionalProperties"];
  EXPECT_EQ(chain["anyOf"][0]["$ref"], "#/$defs/stage");
  const Schema& keys = schema["$defs"]["stage"]["properties"];
  EXPECT_EQ(keys.size(), schema["properties"].size());
  EXPECT_FALSE(keys.contains("name"));
  EXPECT_FALSE(keys.contains("stages"));
  EXPECT_EQ(keys["launch"], schema["properties"]["launch"]);
  EXPECT_FALSE(keys["after"].contains("default"));
  EXPECT_EQ(keys["after"]["anyOf"][1]["type"], "array");
  EXPECT_TRUE(keys["creates"].at("default").is_null());
  EXPECT_EQ(keys["creates"]["anyOf"][1]["type"], "null");
}

TEST(Explain, KnowsWhatStandsBelowAStage) {
  EXPECT_EQ(explain("stages.train.after").value_or(""), explain("stages.NAME.after").value_or("x"));
  EXPECT_EQ(explain("stages.train.launch.args").value_or(""), explain("launch.args").value_or("x"));
  EXPECT_EQ(explain("stages.train").value_or(""), explain("stages.NAME").value_or("x"));
  EXPECT_EQ(explain("stages.train.launch.arg").error().message,
            "explaining 'launch.arg': no such key; did you mean 'launch.args'?");
}

}  // namespace
}  // namespace muster::spec
