#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/spec/keys/key_type.h"
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

// --- every row is set, nulled and reset ----------------------------------------------------------
// A value for each key that has a field. `with`: what else the spec needs for it. `needed`: the
// spec is not sound without the key.
struct Sample {
  const char *key, *value;
  const char* with = "";
  bool needed = false;
};
constexpr const char *kScript = "engine: torch\nlaunch: {script: a.sh, per: node}\n",
                     *kStep =
                         "engine: torch\nlaunch: {script: a.py}\nobserve: {progress: {step: "
                         "'at (.*)'}}\n",
                     *kImage = "engine: torch\nlaunch: {script: a.py}\nruntime: {image: a:1}\n",
                     *kPlain = "engine: torch\nlaunch: {script: a.py}\n",
                     *kNamed = "engine: torch\nlaunch: {script: a.py, args: b.json}\n",
                     *kMegatron = "engine: megatron\nlaunch: {script: a.py, args: --save /x}\n",
                     *kFromJob =
                         "engine: megatron\nlaunch: {script: a.py, args: --save /x}\n"
                         "start: {from: 'job:b'}\n",
                     *kUploads =
                         "engine: torch\nlaunch: {script: a.py}\n"
                         "outputs: {to: 'obs://bucket/runs'}\n",
                     *kProfiled =
                         "engine: megatron\nlaunch: {script: a.py, args: --save /x}\n"
                         "observe: {profile: {start: 5, stop: 9}}\n";
const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"name", "other"},
      {"description", "words"},
      {"labels", "{team: nlp}"},
      {"compat", "modelarts"},
      {"engine", "torch", "engine: megatron\nlaunch: {script: a.py, args: --save /x}\n"},
      {"code.from", "below", kPlain},
      {"code.at", "/elsewhere", kPlain, true},
      {"code.patches", "[a.diff]"},
      {"runtime.image", "a:1"},
      {"runtime.python", "python3.11"},
      {"runtime.setup", "true"},
      {"runtime.setup.run", "[true, 'a b']",
       "engine: torch\nlaunch: {script: a.py}\nruntime: {setup: x}\n", true},
      {"runtime.setup.timeout", "5m",
       "engine: torch\nlaunch: {script: a.py}\nruntime: {setup: x}\n"},
      {"runtime.env", "{A: b}"},
      {"runtime.mounts", "[/data]", kImage},
      {"runtime.user", ""},  // one value alone is accepted
      {"runtime.limits.nofile", "1024"},
      {"runtime.limits.memlock", "64MiB"},
      {"runtime.limits.memory", "1GiB", kImage},
      {"runtime.limits.cpus", "1.5", kImage},
      {"launch.per", "once", "engine: command\nlaunch: {run: a b}\nresources: {devices: 1}\n"},
      {"launch.run", "a b", "engine: command\nlaunch: {run: c}\n", true},
      {"launch.script", "b.py", kPlain, true},
      {"launch.config", "b.yaml", "", true},
      {"launch.mode", "finetune"},
      {"launch.launcher", "msrun"},
      {"launch.intercept", "off", kScript},
      {"launch.args", "--lr 1", kPlain},
      {"launch.patch", "{b.json: {x: 1}}", kNamed},
      {"launch.vars", "{A: b}", kScript},
      {"launch.cwd", "below", kPlain},
      {"launch.lockstep", "no", "engine: megatron\nlaunch: {script: a.py, args: --save /x}\n"},
      {"resources.nodes", "3"},
      {"resources.devices", "4"},
      {"resources.type", "ascend"},
      {"resources.hosts", "[n1, n2]"},
      {"resources.select", "{zone: a}"},
      {"resources.rank_table", "table.json"},
      {"network.interface", "eth0"},
      {"network.master_port", "29500"},
      {"inputs", "{data: /data}"},
      {"start.from", "/data/base", "engine: megatron\nlaunch: {script: a.py, args: --save /x}\n"},
      {"start.as", "resume", kFromJob},
      {"start.step", "7", kFromJob},
      {"checkpoint.dir", "/fast"},
      {"checkpoint.storage", "local"},
      {"checkpoint.layout", "none", kPlain},
      {"resume", "none", kPlain},
      {"resume.args", "--again"},
      {"resume.env", "{A: b}"},
      {"resume.drop", "[--fresh]", "engine: torch\nlaunch: {script: a.py, args: --fresh}\n"},
      {"resume.patch", "{b.json: {x: 1}}", kNamed},
      {"resume.vars", "{A: b}", kScript},
      {"outputs.dir", "/out"},
      {"outputs.to", "obs://bucket/runs"},
      {"outputs.every", "1m", kUploads},
      {"outputs.rate_limit", "200MiB", kUploads},
      {"outputs.keep", "3", kUploads},
      {"outputs.include", "['*.pt']", kUploads},
      {"outputs.logs_to", "obs://bucket/logs"},
      {"observe.profile", "true", kMegatron},
      {"observe.profile.start", "6", kProfiled, true},
      {"observe.profile.stop", "8", kProfiled, true},
      {"observe.profile.ranks", "[0]", kProfiled},
      {"observe.dump", "dump.json"},
      {"observe.plog", "false"},
      {"observe.progress", "none", kPlain},
      {"observe.progress.step", "'step (.*)'", kStep},
      {"observe.progress.loss", "'loss (.*)'", kStep},
      {"observe.progress.total", "100", kStep},
      {"success", "exit0"},
      {"success.regex", "done"},
      {"success.file", "_DONE"},
      {"success.rank_file", "'_DONE_${rank}'"},
      {"recovery.max_restarts", "3"},
      {"recovery.window", "1h"},
      {"recovery.backoff", "30s"},
      {"recovery.orphan_grace", "1m"},
      {"recovery.stop_grace", "1s"},
      {"schedule.after", "[a]"},
  };
  return all;
}

ParseOptions with_files() {
  return {
      .base_dir = "/srv",
      .read_file = [](const std::string& path, std::size_t) -> Result<std::string> {
        if (path.ends_with(".diff"))
          return std::string("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n");
        if (path.ends_with("dump.json"))
          return std::string(R"({"common_dump_settings": {"net_name": "n", "iteration": "0"}})");
        return std::string(R"({"version": "1.0", "server_count": "1", "status": "completed",
"server_list": [{"server_id": "10.0.0.1", "device": [
{"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"}]}]})");
      }};
}

std::string put(v1::JobSpec& spec, const std::string& key, const std::string& value) {
  ParseOptions options = with_files();
  options.set = {{key, value}};
  return format(set_over(spec, options), "");
}

class EveryRow : public testing::TestWithParam<Sample> {};

TEST_P(EveryRow, IsSetNulledAndReset) {
  const auto& [key, value, with, needed] = GetParam();
  const KeyRow& row = *find_key(key);
  const std::string text =
      std::string("name: x\n") +
      (*with == '\0' ? "engine: mindformers\nlaunch: {config: a.yaml}\nresources: {devices: 1}\n"
                     : with);
  const Parsed parsed = parse_yaml(text, with_files());
  ASSERT_EQ(format(parsed.problems, "job.yaml"), "") << text;
  if (*value == '\0') return;
  const std::string before = spec_hash(parsed.spec);
  v1::JobSpec set = parsed.spec;
  ASSERT_EQ(put(set, key, value), "");
  EXPECT_NE(spec_hash(set), before) << "nothing was set";

  v1::JobSpec nulled = set;
  const std::string problems = put(nulled, key, "null");
  if (needed) {
    EXPECT_NE(problems, "") << "it is gone";
  } else if (row.type->null == NullMeans::Absent) {
    EXPECT_EQ(problems, "");
    EXPECT_EQ(spec_hash(nulled), before) << "null is as if the key were not there";
  } else if (row.type->null == NullMeans::Zero || row.type == &kResume || row.type == &kProgress) {
    EXPECT_EQ(problems, "") << "null is a value";
  } else {
    EXPECT_THAT(problems, testing::HasSubstr(std::string(key) + ": has no value"));
  }

  // The default sets it back, where one is a value of its own.
  const bool writable = !needed && !row.fallback.empty() && row.fallback != "null" &&
                        !row.type->map_adds && row.key != std::string_view("resources.devices");
  if (!writable) return;
  v1::JobSpec reset = set;
  EXPECT_EQ(put(reset, key, std::string(row.fallback)), "");
  EXPECT_EQ(spec_hash(reset), before) << "set to its default";
}

INSTANTIATE_TEST_SUITE_P(KeyTable, EveryRow, testing::ValuesIn(samples()),
                         [](const testing::TestParamInfo<Sample>& row) {
                           std::string name = row.param.key;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

TEST(SetOver, EveryRowHasASample) {
  for (const KeyRow& row : key_table())
    if (row.type->has_field) {
      EXPECT_NE(std::ranges::find(samples(), row.key,
                                  [](const Sample& one) { return std::string_view(one.key); }),
                samples().end())
          << row.key;
    }
}

// Regression: `muster resume --set observe.dump=null` did nothing, silently.
TEST(SetOver, TheDumpAndTheProfileAreTakenOut) {
  Parsed parsed = parse_yaml(
      "name: x\nengine: mindformers\nlaunch: {config: a.yaml}\nresume: none\n"
      "observe: {dump: dump.json, profile: {start: 5, stop: 8}}\n",
      with_files());
  ASSERT_EQ(format(parsed.problems, "job.yaml"), "");
  EXPECT_EQ(put(parsed.spec, "observe.dump", "null"), "");
  EXPECT_FALSE(parsed.spec.observe().has_dump());
  EXPECT_EQ(put(parsed.spec, "observe.profile.stop", "9"), "");
  EXPECT_EQ(parsed.spec.observe().profile().start(), 5U) << "the others stay";
  EXPECT_EQ(put(parsed.spec, "observe.profile", "false"), "");
  EXPECT_FALSE(parsed.spec.observe().has_profile());
}

// Regression: quotes make null a text, and it was taken for the default.
TEST(SetOver, ATextMayBeTheWordNull) {
  Parsed parsed =
      parse_yaml("name: x\nengine: torch\nlaunch: {script: a.py}\n", {.base_dir = "/srv"});
  EXPECT_EQ(set(parsed.spec, {{"success.regex", "'null'"}}), "");
  EXPECT_EQ(parsed.spec.success().regex(), "null");
}

TEST(SetOver, NullOfASectionIsNullOfItsKeys) {
  Parsed parsed = parse_yaml(
      "name: x\nengine: torch\nlaunch: {script: a.py}\nrecovery: {max_restarts: 3}\n"
      "inputs: {a: /a, b: /b}\n",
      {.base_dir = "/srv"});
  EXPECT_EQ(set(parsed.spec, {{"recovery", "null"}, {"inputs.b", "/c"}}), "");
  EXPECT_EQ(parsed.spec.recovery().max_restarts(), 20U);
  ASSERT_EQ(parsed.spec.inputs_size(), 2) << "the others stay";
  EXPECT_EQ(parsed.spec.inputs(1).from(), "/c");
}

// Regression: a new time for the setup took its commands away.
TEST(SetOver, AMapAddsToASection) {
  Parsed parsed =
      parse_yaml("name: x\nengine: torch\nlaunch: {script: a.py}\nruntime: {setup: x}\n",
                 {.base_dir = "/srv"});
  EXPECT_EQ(set(parsed.spec, {{"runtime.setup.timeout", "1h"}}), "");
  EXPECT_THAT(parsed.spec.runtime().setup(), ElementsAre("x"));
  EXPECT_EQ(parsed.spec.runtime().setup_timeout().seconds(), 3600);
}

}  // namespace
}  // namespace muster::spec
