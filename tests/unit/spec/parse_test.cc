#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "common/engine/model/engine.h"
#include "common/spec/parse.h"
#include "tests/support/checkout.h"

namespace muster::spec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::JobSpec sound(std::string_view text, ParseOptions options = {.base_dir = "/home/ada/exp"}) {
  const Parsed parsed = parse_yaml(text, options);
  EXPECT_EQ(format(parsed.problems, "job.yaml"), "") << text;
  return parsed.spec;
}

std::string minimal(std::string_view more = "") {
  return "name: x\nengine: torch\nlaunch: {script: a.py}\n" + std::string(more);
}

TEST(Parse, FillsEveryDefaultIn) {
  const v1::JobSpec spec = sound(minimal());
  EXPECT_EQ(spec.code().at(), "/home/ada/exp");
  EXPECT_EQ(spec.runtime().python(), "auto");
  EXPECT_EQ(spec.runtime().user(), "submitter");
  EXPECT_EQ(spec.runtime().limits().nofile(), 1048576u);
  EXPECT_EQ(spec.runtime().limits().memlock(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(spec.launch().per(), v1::LAUNCH_PER_RANK);
  EXPECT_FALSE(spec.launch().lockstep()) << "nobody knows where it saves";
  EXPECT_EQ(spec.resources().nodes(), 1u);
  EXPECT_EQ(spec.resources().devices(), 8u);
  EXPECT_EQ(spec.resources().type(), "auto");
  EXPECT_EQ(spec.network().interface(), "auto");
  EXPECT_EQ(spec.checkpoint().layout(), "torch");
  EXPECT_TRUE(spec.resume().enabled());
  EXPECT_EQ(spec.observe().grammar(), "auto");
  EXPECT_TRUE(spec.success().exit0());
  EXPECT_EQ(spec.recovery().max_restarts(), 20u);
  EXPECT_EQ(spec.recovery().window().seconds(), 86400);
  EXPECT_EQ(spec.recovery().orphan_grace().seconds(), 1800);
  EXPECT_EQ(spec.recovery().stop_grace().seconds(), 10);
  EXPECT_FALSE(spec.recovery().has_backoff());
  EXPECT_EQ(spec.output_dir(), "");
}

TEST(Parse, DefaultsFollowTheEngineAndTheLaunch) {
  EXPECT_FALSE(sound("name: x\nengine: command\nlaunch: {run: a}").launch().lockstep());
  EXPECT_FALSE(
      sound("name: x\nengine: torch\nlaunch: {per: once, script: a.py}").launch().lockstep());
  EXPECT_EQ(sound("name: x\nengine: command\nlaunch: {per: once, run: a}").resources().devices(),
            1u);
  EXPECT_TRUE(
      sound("name: x\nengine: command\nlaunch: {run: a, lockstep: true}").launch().lockstep());
  EXPECT_FALSE(
      sound("name: x\nengine: torch\nlaunch: {script: a.py, lockstep: no}").launch().lockstep());
}

TEST(Parse, MindFormersHasDefaultsOfItsOwn) {
  v1::JobSpec spec = sound("name: x\nengine: mindformers\nlaunch: {config: a.yaml}");
  EXPECT_EQ(spec.launch().script(), "run_mindformer.py");
  EXPECT_EQ(spec.launch().config(), "a.yaml");
  EXPECT_EQ(spec.launch().mode(), v1::LAUNCH_MODE_TRAIN);
  EXPECT_EQ(spec.launch().launcher(), v1::LAUNCHER_RANKTABLE);
  EXPECT_EQ(spec.checkpoint().layout(), "mindformers");
  EXPECT_EQ(spec.observe().grammar(), "mindformers");
  EXPECT_TRUE(spec.launch().lockstep());
  EXPECT_TRUE(spec.resume().enabled());
  for (const auto& [word, mode] :
       {std::pair{"finetune", v1::LAUNCH_MODE_FINETUNE}, std::pair{"eval", v1::LAUNCH_MODE_EVAL},
        std::pair{"predict", v1::LAUNCH_MODE_PREDICT},
        std::pair{"strategy", v1::LAUNCH_MODE_STRATEGY}}) {
    spec = sound(
        std::string(
            "name: x\nengine: mindformers\nlaunch: {config: a.yaml, launcher: msrun, mode: ") +
        word + "}");
    EXPECT_EQ(spec.launch().mode(), mode);
    EXPECT_EQ(spec.launch().launcher(), v1::LAUNCHER_MSRUN);
    EXPECT_EQ(spec.launch().lockstep(), mode == v1::LAUNCH_MODE_FINETUNE) << word;
    EXPECT_EQ(spec.resume().enabled(), mode == v1::LAUNCH_MODE_FINETUNE) << word;
    EXPECT_EQ(spec.success().rank_file(),
              mode == v1::LAUNCH_MODE_STRATEGY
                  ? "${save.dir}/strategy/ckpt_strategy_rank_${rank}.ckpt"
                  : "")
        << word;
  }
  // For the older engines, the bytes of a spec stay the same, and so does its hash.
  const v1::JobSpec torch = sound(
      "name: x\nengine: torch\nlaunch: {script: a.py, config: null, mode: train, launcher: auto}");
  EXPECT_EQ(torch.launch().mode(), v1::LAUNCH_MODE_UNSPECIFIED);
  EXPECT_EQ(torch.launch().launcher(), v1::LAUNCHER_UNSPECIFIED);
  EXPECT_EQ(spec_hash(torch), spec_hash(sound(minimal())));
}

TEST(Complete, RefusesNumbersThatAreNoWordOfTheEngines) {
  v1::JobSpec spec = sound("name: x\nengine: mindformers\nlaunch: {config: a.yaml}");
  spec.mutable_launch()->set_mode(static_cast<v1::LaunchMode>(77));
  spec.mutable_launch()->set_launcher(static_cast<v1::Launcher>(-1));
  EXPECT_EQ(format(complete(spec), "x"),
            "launch.mode: 77 is not accepted (train | finetune | eval | predict | "
            "strategy)\nlaunch.launcher: -1 is not accepted (auto | ranktable | msrun)\n");
}

TEST(Parse, ReadsArgumentsInAllForms) {
  const auto args = [](std::string_view yaml) {
    const v1::JobSpec spec =
        sound("name: x\nengine: torch\nlaunch:\n  script: a.py\n  args: " + std::string(yaml));
    return std::vector<std::string>(spec.launch().args().begin(), spec.launch().args().end());
  };
  EXPECT_THAT(args("--a 1 --b 'two words' --c \"\" d\\ e"),
              ElementsAre("--a", "1", "--b", "two words", "--c", "", "d e"));
  EXPECT_THAT(args(">-\n    --a 1\n    --load ${resume.dir}"),
              ElementsAre("--a", "1", "--load", "${resume.dir}"));
  EXPECT_THAT(args("|\n    --a 1 \\\n    --b 2\n"), ElementsAre("--a", "1", "--b", "2"));
  EXPECT_THAT(args("[--a, 1, true, 'b c', 1e-4]"), ElementsAre("--a", "1", "true", "b c", "1e-4"));
  EXPECT_THAT(args("{lr: 1e-4, flash: true, slow: false, nothing: null, data: [a, b], quoted: "
                   "'true', -x: 1, --y: 2}"),
              ElementsAre("--lr", "1e-4", "--flash", "--data", "a", "--data", "b", "--quoted",
                          "true", "-x", "1", "--y", "2"));
  EXPECT_THAT(args(""), IsEmpty());
  EXPECT_THAT(args("''"), IsEmpty());
}

TEST(Parse, ReadsDevicesInAllForms) {
  const auto resources = [](std::string_view devices) {
    return sound(minimal("resources: {devices: " + std::string(devices) + "}")).resources();
  };
  EXPECT_EQ(resources("3").devices(), 3u);
  EXPECT_THAT(resources("\"[4,8)\"").device_ids(), ElementsAre(4u, 5u, 6u, 7u));
  EXPECT_EQ(resources("\"[4,8)\"").devices(), 0u);
  EXPECT_THAT(resources("'[0, 2)'").device_ids(), ElementsAre(0u, 1u));
  EXPECT_THAT(resources("[2,0]").device_ids(), ElementsAre(2u, 0u)) << "the order is the ranks'";
}

TEST(Parse, PlacesCode) {
  EXPECT_EQ(sound(minimal("code: {from: ..}")).code().at(), "/home/ada");
  EXPECT_EQ(sound(minimal("code: {from: sub/}")).code().at(), "/home/ada/exp/sub");
  EXPECT_EQ(sound(minimal("code: {from: /opt/x}")).code().at(), "/opt/x");
  EXPECT_EQ(sound(minimal("code: {at: /opt/x}")).code().at(), "/opt/x");
}

// A spec has one of the two; an override of one replaces the other.
TEST(Parse, CodeIsSetOverTheFilesOwn) {
  for (const char* file : {"code: {from: .}", "code: {from: sub}", "code: {at: /opt/y}"})
    EXPECT_EQ(sound(minimal(file), {.base_dir = "/home/ada/exp", .set = {{"code.at", "/opt/x"}}})
                  .code()
                  .at(),
              "/opt/x")
        << file;
  EXPECT_EQ(sound(minimal("code: {at: /opt/y}"),
                  {.base_dir = "/home/ada/exp", .set = {{"code.from", "sub"}}})
                .code()
                .at(),
            "/home/ada/exp/sub");
}

TEST(Parse, ReadsResumeObserveAndSuccess) {
  EXPECT_FALSE(sound(minimal("resume: none")).resume().enabled());
  EXPECT_FALSE(sound(minimal("resume:")).resume().enabled());
  const v1::JobSpec spec =
      sound(minimal("resume: {args: '--load ${resume.dir}', env: {A: b}}\nobserve: {progress: "
                    "{step: 'step (\\d+)', total: 9}}\nsuccess: {regex: 'all done'}"));
  EXPECT_TRUE(spec.resume().enabled());
  EXPECT_THAT(spec.resume().args(), ElementsAre("--load", "${resume.dir}"));
  EXPECT_EQ(spec.resume().env().at("A"), "b");
  EXPECT_EQ(spec.observe().grammar(), "custom");
  EXPECT_EQ(spec.observe().step(), "step (\\d+)");
  EXPECT_EQ(spec.observe().total(), "9");
  EXPECT_EQ(spec.success().regex(), "all done");
  EXPECT_EQ(sound(minimal("observe: {progress: none}")).observe().grammar(), "none");
  EXPECT_EQ(sound(minimal("success: {file: '${out}/done'}")).success().file(), "${out}/done");
  EXPECT_EQ(sound(minimal("checkpoint: {dir: ck}")).checkpoint().dir(), "${out}/ck");
  EXPECT_EQ(sound(minimal("checkpoint: {dir: /fast/ck}")).checkpoint().dir(), "/fast/ck");
}

TEST(Parse, TextsStayTexts) {
  const v1::JobSpec spec = sound(minimal(
      "runtime: {env: {A: true, B: 010, C: 1.50, D: '', E: \"a\\nb\"}}\nlabels: {v: 1.10}"));
  EXPECT_EQ(spec.runtime().env().at("A"), "true");
  EXPECT_EQ(spec.runtime().env().at("B"), "010");
  EXPECT_EQ(spec.runtime().env().at("C"), "1.50");
  EXPECT_EQ(spec.runtime().env().at("D"), "");
  EXPECT_EQ(spec.runtime().env().at("E"), "a\nb");
  EXPECT_EQ(spec.labels().at("v"), "1.10");
}

TEST(Parse, OverridesWin) {
  const v1::JobSpec spec =
      sound(minimal("resources: {nodes: nonsense}\nresume: none\nlabels: {a: b}"),
            {.base_dir = "/w",
             .set = {{"resources.nodes", "2"},
                     {"resources.devices", "[0,1]"},
                     {"resume.args", "--again"},
                     {"labels.x.y/z", "1"},
                     {"recovery", "{max_restarts: 0}"},
                     {"resources.nodes", "3"}},
             .env = {{"A", "b: [c"}, {"OMP_NUM_THREADS", "2"}}});
  EXPECT_EQ(spec.resources().nodes(), 3u);
  EXPECT_THAT(spec.resources().device_ids(), ElementsAre(0u, 1u));
  EXPECT_THAT(spec.resume().args(), ElementsAre("--again"));
  EXPECT_TRUE(spec.resume().enabled());
  EXPECT_EQ(spec.labels().at("a"), "b");
  EXPECT_EQ(spec.labels().at("x.y/z"), "1");
  EXPECT_EQ(spec.recovery().max_restarts(), 0u);
  EXPECT_EQ(spec.runtime().env().at("A"), "b: [c");
}

// A zero is left out: the bytes of a spec stay the same, and so does its hash.
TEST(Parse, ABackoffIsADurationAndZeroIsNone) {
  const v1::JobSpec spec = sound(minimal("recovery: {backoff: 1m30s}"));
  EXPECT_EQ(spec.recovery().backoff().seconds(), 90);
  for (const char* zero : {"0", "0s", "0m"}) {
    const v1::JobSpec none = sound(minimal(std::string("recovery: {backoff: ") + zero + "}"));
    EXPECT_FALSE(none.recovery().has_backoff()) << zero;
    EXPECT_EQ(spec_hash(none), spec_hash(sound(minimal()))) << zero;
  }
}

TEST(Parse, TheSampleIsSound) {
  std::ifstream file(test::checkout("deploy/samples/tiny-gpt/job.yaml"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(sound(text).engine(), "torch");
}

// The controller must find nothing to change in what the client makes from a file.
TEST(Complete, ChangesNothingInACompleteSpec) {
  for (const std::string& text :
       {minimal(), minimal("resources: {devices: [1,2]}\nsuccess: {file: done}"),
        minimal("recovery: {backoff: 1m30s}"),
        minimal("recovery: {stop_grace: 0, max_restarts: 0}\nresume: none\nruntime: {limits: "
                "{nofile: null}}")}) {
    const v1::JobSpec spec = sound(text);
    v1::JobSpec again = spec;
    EXPECT_TRUE(complete(again).empty());
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(spec, again));
    EXPECT_EQ(spec_hash(spec), spec_hash(again));
  }
}

TEST(Complete, ChecksWhatComesOverTheApi) {
  v1::JobSpec spec;
  spec.set_name("x");
  spec.set_engine("command");
  spec.mutable_launch()->add_run("/bin/true");
  v1::JobSpec good = spec;
  EXPECT_EQ(format(complete(good), ""), "");
  EXPECT_EQ(good.code().at(), "/");

  const auto problem = [&](auto&& change) {
    v1::JobSpec bad = spec;
    change(bad);
    return format(complete(bad), "");
  };
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              s.clear_launch();
              s.mutable_launch()->set_script("a.py");
            }),
            "code.at: is missing, and launch.script 'a.py' is below it (an absolute directory)\n");
  EXPECT_EQ(
      problem([](v1::JobSpec& s) { s.mutable_launch()->set_per(static_cast<v1::LaunchPer>(9)); }),
      "launch.per: 9 is not accepted (rank | node | once)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_resources()->set_nodes(70000); }),
            "resources.nodes: 70000 is out of range (1..65536)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              s.mutable_resources()->set_devices(2), s.mutable_resources()->add_device_ids(0);
            }),
            "resources.devices: 2 devices, and 1 named ones; leave one of the two out\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_resources()->set_type("tpu"); }),
            "resources.type: 'tpu' is not accepted (auto | cpu | ascend | ascend910 | ascend910b | "
            "ascend910_93 | nvidia)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_resources()->set_type("auto | cpu"); }),
            "resources.type: 'auto | cpu' is not accepted (auto | cpu | ascend | ascend910 | "
            "ascend910b | ascend910_93 | nvidia)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_network()->set_interface("eth0"); }), "");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_network()->set_interface("eth0,ib0"); }),
            "network.interface: 'eth0,ib0' is not an interface's name: letters, digits, . _ -, at "
            "most 15 characters (auto | a name, as in /sys/class/net)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_runtime()->add_setup(" \n"); }),
            "runtime.setup[0]: is empty: a command for a shell\n");
  EXPECT_EQ(
      problem([](v1::JobSpec& s) { s.mutable_runtime()->add_setup(std::string(70'000, 'x')); }),
      "runtime.setup: has 70001 bytes, at most 65536; put it into a script and call that\n");
  EXPECT_EQ(
      problem([](v1::JobSpec& s) { s.mutable_runtime()->mutable_setup_timeout()->set_seconds(5); }),
      "runtime.setup.run: is missing, and there is a time for it (text | list of texts)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              s.mutable_runtime()->add_setup("true");
              s.mutable_runtime()->mutable_setup_timeout()->set_seconds(86'401);
            }),
            "runtime.setup.timeout: is out of range (a duration, 1s..24h)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_runtime()->set_image("--privileged"); }),
            "runtime.image: '--privileged' is no name of an image (registry/name:tag, or "
            "file:///x.tar)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_runtime()->set_image("file://x.tar"); }),
            "runtime.image: 'x.tar' is not absolute (file:///x.tar: an absolute path that every "
            "node sees)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              s.mutable_runtime()->set_image("img");
              s.mutable_runtime()->add_mounts()->set_source("/a");
            }),
            "runtime.mounts[0]: '' is not absolute (an absolute path in the container)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_network()->set_master_port(70000); }),
            "network.master_port: 70000 is out of range (0 = auto, 1..65535)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_checkpoint()->set_dir("rel"); }),
            "checkpoint.dir: 'rel' is neither absolute nor below ${out} (auto | a path, below "
            "${out} unless absolute)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_checkpoint()->set_layout("zarr"); }),
            "checkpoint.layout: looking for checkpoints: layout 'zarr' is not known (mindformers | "
            "megatron | mindspeed-mm | torch | deepspeed | command | none)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_observe()->set_grammar("x"); }),
            "observe.progress: reading progress: grammar 'x' is not known (auto | mindformers | "
            "megatron | mindspeed-mm | deepspeed | custom | none)\n");
  EXPECT_EQ(
      problem([](v1::JobSpec& s) { s.mutable_recovery()->mutable_stop_grace()->set_seconds(-1); }),
      "recovery.stop_grace: is out of range (a duration, 0..1h)\n");
  EXPECT_EQ(
      problem([](v1::JobSpec& s) { s.mutable_recovery()->mutable_backoff()->set_seconds(-1); }),
      "recovery.backoff: is out of range (a duration, 0..24h)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_recovery()->mutable_window()->set_nanos(-5); }),
            "recovery.window: is out of range (a duration, 1s..365d)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_recovery()->set_max_restarts(4'000'000'000); }),
            "recovery.max_restarts: 4000000000 is out of range (0..100000)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.set_output_dir("rel"); }),
            "outputs.dir: 'rel' is not absolute (an absolute directory; empty: chosen by the "
            "controller)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_code()->set_at("rel"); }),
            "code.at: 'rel' is not absolute (an absolute directory)\n");
  EXPECT_EQ(
      problem([](v1::JobSpec& s) { s.mutable_runtime()->set_user("root"); }),
      "runtime.user: 'root' is not accepted: another user is not in this release (submitter)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.set_description(std::string(2000, 'x')); }),
            "description: has 2000 bytes (text, at most 1024 bytes)\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_launch()->add_run(std::string("a\0b", 3)); }),
            "launch.run[1]: has a byte 0 in it: no program can be given that\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_launch()->add_run(std::string(200'000, 'x')); }),
            "launch.run[1]: has 200000 bytes, at most 131071; put it into a file\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              (*s.mutable_runtime()->mutable_env())["A"] = std::string(131070, 'x');
            }),
            "runtime.env.A: has 131072 bytes with its name, at most 131071\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              for (int i = 0; i < 5000; ++i)
                (*s.mutable_runtime()->mutable_env())["A" + std::to_string(i)] = "x";
            }),
            "runtime.env: has 5000 variables, at most 4096\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) {
              for (int i = 0; i < 65; ++i) (*s.mutable_labels())["a" + std::to_string(i)] = "x";
            }),
            "labels: has 65 entries, at most 64\n");
  EXPECT_EQ(problem([](v1::JobSpec& s) { s.mutable_launch()->add_run("${nope}"); }).substr(0, 40),
            "launch.run[1]: '${nope}' is not known ($");
  EXPECT_THAT(problem([](v1::JobSpec& s) {
                for (int i = 0; i < 20; ++i) s.mutable_launch()->add_run(std::string(100'000, 'x'));
              }),
              testing::HasSubstr("the spec has 2000"));
}

// For a shell to read: words, quotes and ${...} are the shell's own.
TEST(Parse, SetupHasThreeForms) {
  const auto setup = [](const std::string& given) {
    return sound(minimal() + "runtime: {setup: " + given + "}\n").runtime();
  };
  EXPECT_THAT(setup("\"source a.sh; export B=$A | cat\"").setup(),
              testing::ElementsAre("source a.sh; export B=$A | cat"));
  EXPECT_THAT(setup("[\"echo '${HOME}'\", 'true']").setup(),
              testing::ElementsAre("echo '${HOME}'", "true"));
  EXPECT_EQ(setup("[a]").setup_timeout().seconds(), 1'800);
  const v1::RuntimeSpec timed = setup("{run: [a, b], timeout: 90s}");
  EXPECT_THAT(timed.setup(), testing::ElementsAre("a", "b"));
  EXPECT_EQ(timed.setup_timeout().seconds(), 90);
  EXPECT_FALSE(setup("[]").has_setup_timeout()) << "the spec of a job without one is what it was";
  EXPECT_FALSE(setup("null").has_setup_timeout());
}

TEST(Parse, LimitsOfAContainerLeaveTheOthersAsTheyAre) {
  const auto limits = [](const std::string& text) {
    return sound(minimal() + "runtime: {image: x, limits: " + text + "}\n").runtime().limits();
  };
  const v1::LimitSpec both = limits("{memory: 1.5GiB, cpus: 7.25}");
  EXPECT_EQ(both.memory_bytes(), 3ULL << 29U);
  EXPECT_EQ(both.millicpus(), 7250U);
  EXPECT_EQ(both.nofile(), 1'048'576U);
  EXPECT_EQ(both.memlock(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(limits("{cpus: 48, nofile: 77, memory: null}").millicpus(), 48'000U);
  EXPECT_EQ(limits("{cpus: null, nofile: null}").memlock(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(limits("{cpus: null, nofile: null}").millicpus() + limits("{nofile: null}").nofile(),
            0U);
}

TEST(Parse, MountsHaveTwoForms) {
  const v1::RuntimeSpec runtime =
      sound(minimal() +
            "runtime: {image: 'file:///share/x.tar', mounts: [/a, '/b:ro', '/c:/d', '/e:/f:ro', "
            "{source: /g, target: /h, read_only: true}, {source: /i}]}\n")
          .runtime();
  EXPECT_EQ(runtime.image(), "file:///share/x.tar");
  std::string text;
  for (const v1::MountSpec& mount : runtime.mounts())
    text += mount.source() + ">" + mount.target() + (mount.read_only() ? "!" : "") + " ";
  EXPECT_EQ(text, "/a>/a /b>/b! /c>/d /e>/f! /g>/h! /i>/i ");
  EXPECT_EQ(sound(minimal() + "runtime: {image: null, mounts: []}\n").runtime().image(), "");
  for (const char* name : {"busybox", "registry.site:5000/team/mindformers:1.3", "a@sha256:0123"})
    EXPECT_EQ(sound(minimal() + "runtime: {image: '" + name + "'}\n").runtime().image(), name);
}

// Found by the fuzzer: a variable's name may contain any byte, and is the end of a key.
TEST(Parse, AProblemIsPrintedWithoutControlBytes) {
  const std::vector<Problem> problems = {{.line = 3,
                                          .column = 3,
                                          .key = "runtime.env.a\x19\n\x1b]0;b",
                                          .message = "is not a variable's name"}};
  EXPECT_EQ(format(problems, "job.yaml"),
            "job.yaml:3:3: runtime.env.a???]0;b: is not a variable's name\n");
}

TEST(SpecHash, DependsOnTheSpecAlone) {
  v1::JobSpec a = sound(minimal()), b = a;
  for (int i = 0; i < 50; ++i) (*a.mutable_labels())["k" + std::to_string(i)] = "v";
  for (int i = 49; i >= 0; --i) (*b.mutable_labels())["k" + std::to_string(i)] = "v";
  EXPECT_EQ(spec_hash(a), spec_hash(b)) << "the order of a map is nothing";
  EXPECT_EQ(spec_hash(a).size(), 16u);
  b.mutable_launch()->add_args("x");
  EXPECT_NE(spec_hash(a), spec_hash(b));
}

// What complete() accepts, plan_launch must be able to plan, on any placement.
TEST(Complete, WhatPassesCanBePlanned) {
  const v1::JobSpec spec = sound(
      minimal("runtime: {env: {A: '${rank}'}}\nresume: {args: '${resume.step} ${env:A}'}\nsuccess: "
              "{file: '${attempt}/x'}\ncheckpoint: {dir: '${out}/${job.name}'}"));
  for (const std::uint32_t nodes : {1u, 3u}) {
    engine::LaunchRequest request{.spec = &spec,
                                  .job_id = "j",
                                  .attempt = 2,
                                  .master_port = 1,
                                  .out_dir = "/o",
                                  .save_dir = "/o/s",
                                  .resume_dir = "/o/r",
                                  .resume_step = 5};
    for (std::uint32_t i = 0; i < nodes; ++i)
      request.nodes.push_back({.node = NodeName("n"),
                               .address = "a",
                               .devices = {0, 1},
                               .first_rank = RankNo(2 * i),
                               .rank_count = 2});
    const auto plan = engine::plan_launch(request);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->ranks.back().argv.back(), std::to_string(2 * nodes - 1));
  }
}

}  // namespace
}  // namespace muster::spec
