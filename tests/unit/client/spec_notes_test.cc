// What `run`, `plan` and `validate` print about a sound spec that may not be what its user meant.
// Regression: `devices: [0,4]`, as a tutorial wrote it for cards 0 to 3, trained on two cards; and
// every node had to find out that a script did not exist.
#include "client/commands/job/spec_notes.h"

#include <gmock/gmock.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/spec/parse.h"

namespace muster::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SpecNotes : public testing::Test {
 protected:
  SpecNotes() {
    std::string made = (std::filesystem::temp_directory_path() / "muster-notes-XXXXXX").string();
    dir_ = mkdtemp(made.data());
    write("train.py", "");
  }
  ~SpecNotes() override { std::filesystem::remove_all(dir_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  std::vector<std::string> notes(const std::string& yaml) {
    const spec::Parsed parsed = spec::parse_yaml("name: x\n" + yaml, {.base_dir = dir_.string()});
    EXPECT_THAT(parsed.problems, IsEmpty()) << spec::format(parsed.problems, "x");
    return spec_notes(parsed.spec);
  }
  std::filesystem::path dir_;
};

TEST_F(SpecNotes, TwoIdsThatMayBeMeantAsARange) {
  EXPECT_THAT(notes("engine: torch\nlaunch: {script: train.py}\nresources: {devices: [0,4]}"),
              ElementsAre("resources.devices: [0,4] are two devices, 0 and 4; \"[0,4)\" would be "
                          "the 4 from 0 to 3"));
  for (const char* devices : {"[0,1]", "\"[0,4)\"", "[0,2,4]", "4", "[4,0]"})
    EXPECT_THAT(
        notes(std::string("engine: torch\nlaunch: {script: train.py}\nresources: {devices: ") +
              devices + "}"),
        IsEmpty())
        << devices;
}

TEST_F(SpecNotes, AScriptThatIsNotOnThisMachine) {
  EXPECT_THAT(notes("engine: torch\nlaunch: {script: trian.py}"),
              ElementsAre("launch.script: '" + (dir_ / "trian.py").string() +
                          "' is not on this machine; every node needs it there under this path"));
  EXPECT_THAT(notes("engine: torch\nlaunch: {run: python3 trian.py}"),
              ElementsAre(HasSubstr("launch.run: '")));
  EXPECT_THAT(notes("engine: torch\nlaunch: {run: python3 -m trian}"), IsEmpty());
  EXPECT_THAT(notes("engine: torch\ncode: {at: /not/on/this/machine}\nlaunch: {script: trian.py}"),
              IsEmpty())
      << "the nodes have the code, this machine has not";
}

TEST_F(SpecNotes, AFlagWithoutItsValue) {
  EXPECT_THAT(
      notes("engine: megatron\nlaunch: {script: train.py, args: --micro-batch-size --bf16}"),
      ElementsAre("launch.args[0]: '--micro-batch-size' has no value: '--bf16' follows it"));
  EXPECT_THAT(notes("engine: torch\nlaunch: {script: train.py, args: --save --bf16}"), IsEmpty())
      << "of another program it may be a switch";
}

TEST_F(SpecNotes, SlipsOfAScript) {
  write("run.sh", "#!/bin/bash\ntorchrun --nnodes 1 train.py \\ \n  --lr 1\n");
  EXPECT_THAT(notes("engine: torch\nlaunch: {per: node, run: bash run.sh}"),
              ElementsAre(HasSubstr("run.sh:2: blanks follow the '\\'")));
}

TEST_F(SpecNotes, AMistypedKeyOfAPatchedConfiguration) {
  write("run_mindformer.py", "");
  write("llama.yaml", "runner_config:\n  epochs: 2\n");
  const std::string head =
      "engine: mindformers\nlaunch: {config: llama.yaml, patch: {llama.yaml: {";
  EXPECT_THAT(notes(head + "runner_config.epoch: 3}}}"),
              ElementsAre(HasSubstr(
                  "'runner_config.epoch' is not there, and is added; did you mean 'epochs'?")));
  EXPECT_THAT(notes(head + "runner_config.epochs: 3}}}"), IsEmpty());
}

}  // namespace
}  // namespace muster::client
