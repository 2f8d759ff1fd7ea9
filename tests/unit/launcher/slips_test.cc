// Regression: a tutorial's script was pasted with a blank after a '\'. The shell started the
// training without the arguments below that line. "--lr: command not found" was in the log after
// the run, but muster plan had shown nothing.
#include "common/compat/shell/slips.h"

#include <gmock/gmock.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> slip_texts(std::string_view script, Flags flags = Flags::OfTraining) {
  std::vector<std::string> out;
  for (const Slip& slip : slips_of(script, flags))
    out.push_back(std::to_string(slip.line) + ": " + slip.text);
  return out;
}

TEST(Slips, ABackslashWithABlankBehindItJoinsNothing) {
  EXPECT_THAT(slip_texts("torchrun a.py \\\n  --lr 1 \\ \n  --seed 3\n"),
              ElementsAre("2: blanks follow the '\\': it joins no lines, and what follows is "
                          "another command"));
  EXPECT_THAT(slip_texts("torchrun a.py \\\n  --lr 1 \\\n  --seed 3\n"), IsEmpty());
  EXPECT_THAT(slip_texts("# a comment \\ \ntorchrun a.py\n"), IsEmpty());
}

TEST(Slips, ABackslashAloneAfterACommandThatHasEnded) {
  EXPECT_THAT(
      slip_texts("torchrun a.py --lr 1\n  \\\n  --seed 3\n"),
      ElementsAre("2: a '\\' alone, behind a line that has none: what follows is another command"));
  EXPECT_THAT(slip_texts("torchrun a.py \\\n  \\\n  --lr 1\n"), IsEmpty())
      << "an empty line between two that are joined";
}

TEST(Slips, AFlagWithoutItsValue) {
  EXPECT_THAT(slip_texts("ARGS=(\n --micro-batch-size\n --global-batch-size 16\n --lr\n)\n"),
              ElementsAre("2: '--micro-batch-size' has no value: '--global-batch-size' follows it",
                          "4: '--lr' has no value: ')' follows it"));
  EXPECT_THAT(slip_texts("torchrun --nnodes \\\n --nproc_per_node 8 a.py\n", Flags::OfLaunchers),
              ElementsAre("1: '--nnodes' has no value: '--nproc_per_node' follows it"));
  EXPECT_THAT(slip_texts("torchrun --nnodes $N --node_rank=0 a.py --save --bf16 --lr -1\n",
                         Flags::OfLaunchers),
              IsEmpty())
      << "of another program --save may be a switch";
  EXPECT_THAT(slip_texts("torchrun a.py --lr 1 --train-iters 2>&1 | tee log\ntorchrun b.py --lr && "
                         "echo\ntorchrun c.py --train-iters\n"),
              ElementsAre("1: '--train-iters' has no value: '2>&1' follows it",
                          "2: '--lr' has no value: '&&' follows it",
                          "3: '--train-iters' has no value: the script ends behind it"));
  EXPECT_THAT(slip_texts("python a.py --lr 1e-5 --train-iters 500 > log\n"), IsEmpty());
  EXPECT_THAT(slip_texts("python a.py --lr -1 --bf16 --use-flash-attn --save \"$OUT\"\n"),
              IsEmpty());
}

TEST(Slips, AreFew) {
  std::string script;
  for (int i = 0; i < 100; ++i) script += "a \\ \n";
  EXPECT_LE(slip_texts(script).size(), 8U);
  EXPECT_THAT(slip_texts(""), IsEmpty());
  EXPECT_THAT(slip_texts("\\"), testing::SizeIs(1));
}

}  // namespace
}  // namespace muster::launcher
