// Assignments in scripts as tutorials write them.
#include "common/compat/patch/shell_vars.h"

#include <gtest/gtest.h>

#include "common/compat/patch/document.h"

namespace muster::patch {
namespace {

struct Row {
  const char* script;
  Variables values;
  const char* becomes;
};

std::string replaced(const std::string& script, const Variables& values) {
  const auto result = replaced_assignments("run.sh", script, values);
  return result ? *result : "refused: " + result.error().message;
}

TEST(ShellVariables, AreReplacedWhereAShellAssignsThem) {
  const Row rows[] = {
      {"NNODES=1\n", {{"NNODES", "2"}}, "NNODES=2\n"},
      {"  export NNODES=1 # one\n", {{"NNODES", "2"}}, "  export NNODES=2 # one\n"},
      {"NNODES=1", {{"NNODES", ""}}, "NNODES=''"},
      {"SAVE=\"/a b/$X\"/c\necho $SAVE\n",
       {{"SAVE", "/o'brien"}},
       "SAVE='/o'\\''brien'\necho $SAVE\n"},
      {"ARGS=\"--a 1 \\\n  --b 2\"\nA=1\n", {{"A", "3"}, {"ARGS", "--c"}}, "ARGS=--c\nA=3\n"},
      {"LONG=a\\\nb\\\nc d\n", {{"LONG", "x"}}, "LONG=x d\n"},
      {"A=1; A=2 && A=3 || A=4 | A=5 & A=6\n",
       {{"A", "x"}},
       "A=x; A=x && A=x || A=x | A=x & A=x\n"},
      {"A=1 B=2 torchrun x.py A=3\n", {{"A", "9"}, {"B", "8"}}, "A=9 B=8 torchrun x.py A=3\n"},
      {"export A=1 B=2 C\n", {{"B", "8"}}, "export A=1 B=8 C\n"},
      {"declare -x A=1\nreadonly A=2\nf() { local A=3; }\n",
       {{"A", "0"}},
       "declare -x A=0\nreadonly A=0\nf() { local A=0; }\n"},
      {"if [ -z \"$A\" ]; then A=1; else A=2; fi\n",
       {{"A", "0"}},
       "if [ -z \"$A\" ]; then A=0; else A=0; fi\n"},
      {"for i in 1 2; do A=$i; done\n", {{"A", "0"}}, "for i in 1 2; do A=0; done\n"},
      {"case $1 in x) A=1 ;; *) A=2 ;; esac\n",
       {{"A", "0"}},
       "case $1 in x) A=0 ;; *) A=0 ;; esac\n"},
      {"A=$(B=1; echo \"$(cat 'x y')\") C=2\n", {{"A", "0"}, {"C", "3"}}, "A=0 C=3\n"},
      {"A=`date +%s` x\nA=${B:-\"}\"} y\n", {{"A", "0"}}, "A=0 x\nA=0 y\n"},
      {"A=$((1 + 2))\n((A=3))\n", {{"A", "0"}}, "A=0\n((A=3))\n"},
      {"# A=1\necho A=2 \"\nA=3\n\"\nA=4\n", {{"A", "0"}}, "# A=1\necho A=2 \"\nA=3\n\"\nA=0\n"},
      {"cat <<EOF > x\nA=1\nEOF\nA=2\n", {{"A", "0"}}, "cat <<EOF > x\nA=1\nEOF\nA=0\n"},
      {"cat <<-'E O' <<B\n\tA=1\n\tE O\nA=2\nB\nA=3\n",
       {{"A", "0"}},
       "cat <<-'E O' <<B\n\tA=1\n\tE O\nA=2\nB\nA=0\n"},
      {"cat <<< A=1\nA=2 > A=3\n", {{"A", "0"}}, "cat <<< A=1\nA=0 > A=3\n"},
      {"AB=1\nA=2\nA+=3\nA[0]=4\n$A=5\n", {{"A", "0"}}, "AB=1\nA=0\nA+=3\nA[0]=4\n$A=5\n"},
      {"A=$'it\\'s' B=2\n", {{"A", "0"}}, "A=0 B=2\n"},
      {"env A=1 program\nA=2\n", {{"A", "0"}}, "env A=1 program\nA=0\n"},
      {"A=1\n", {{"A", "${B} `c` $(d)"}}, "A='${B} `c` $(d)'\n"},
      {"L=(1 2 3)\nA=4\n", {{"A", "0"}}, "L=(1 2 3)\nA=0\n"},
      {"L+=(1 2) A=4 x\n", {{"A", "0"}}, "L+=(1 2) A=0 x\n"},
      {"2>log A=4 x\n", {{"A", "0"}}, "2>log A=0 x\n"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(replaced(row.script, row.values), row.becomes) << row.script;
}

// Regression: a quote in a comment hid everything up to the next quote, and an assignment in
// between was not replaced.
TEST(ShellVariables, WhatStandsInBracketsIsPassedOverAsAShellDoes) {
  const Row rows[] = {
      {"OPTS=(\n --epochs $E   # the model's length\n)\nA=1\n",
       {{"A", "0"}},
       "OPTS=(\n --epochs $E   # the model's length\n)\nA=0\n"},
      {"X=$(\n# it's (one\necho)\nA=1\n", {{"A", "0"}}, "X=$(\n# it's (one\necho)\nA=0\n"},
      {"X=$(cat <<EOF\nit's ) here\nA=2\nEOF\n)\nA=1\n",
       {{"A", "0"}},
       "X=$(cat <<EOF\nit's ) here\nA=2\nEOF\n)\nA=0\n"},
      {"X=\"$(cat <<-E\n\tit's \"\n\tE\n)\"\nA=1\n",
       {{"A", "0"}},
       "X=\"$(cat <<-E\n\tit's \"\n\tE\n)\"\nA=0\n"},
      {"X=\"${1:-it's}\"\nA=1\n", {{"A", "0"}}, "X=\"${1:-it's}\"\nA=0\n"},
      {"X=\"${1#'}'}\"\nA=1\n", {{"A", "0"}}, "X=\"${1#'}'}\"\nA=0\n"},
      {"X=\"${L[@]%'}'}\"\nA=1\n", {{"A", "0"}}, "X=\"${L[@]%'}'}\"\nA=0\n"},
      {"cat <<E\r\nA=2\r\nE\r\nA=1\r\n", {{"A", "0"}}, "cat <<E\r\nA=2\r\nE\r\nA=0\r\n"},
      {"X=${1:-'}'}\nA=1\n", {{"A", "0"}}, "X=${1:-'}'}\nA=0\n"},
      {"X=$((1 << 3)) Y=${#X}\nA=1\n", {{"A", "0"}}, "X=$((1 << 3)) Y=${#X}\nA=0\n"},
      {"X=$(cat <<< 'a') Y=$(echo a#b $# \")\")\nA=1\n",
       {{"A", "0"}},
       "X=$(cat <<< 'a') Y=$(echo a#b $# \")\")\nA=0\n"},
      {"X=($'it\\'s' b)\nA=1\n", {{"A", "0"}}, "X=($'it\\'s' b)\nA=0\n"},
      {"function g { A=1; }\nfunction h() { A=2; }\n",
       {{"A", "0"}},
       "function g { A=0; }\nfunction h() { A=0; }\n"},
      {"prog &> log A=2\nprog &>> log A=3\nprog >| log A=4\nA=1\n",
       {{"A", "0"}},
       "prog &> log A=2\nprog &>> log A=3\nprog >| log A=4\nA=0\n"},
      {"if [[ $x =~ (A=1) && A=2 < 3 ]]; then A=1; fi\n",
       {{"A", "0"}},
       "if [[ $x =~ (A=1) && A=2 < 3 ]]; then A=0; fi\n"},
      {"while read l; do A=1; done < <(B=1 A=2 ls)\n",
       {{"A", "0"}},
       "while read l; do A=0; done < <(B=1 A=2 ls)\n"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(replaced(row.script, row.values), row.becomes) << row.script;
}

TEST(ShellVariables, WhatIsNeverClosedIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"A=1\necho 'a\nA=2\n", "a quote opened in line 2 is never closed"},
      {"A=1\n\nB=(\n \"x\n)\n", "a quote opened in line 4 is never closed"},
      {"A=1\nB=$(ls\n", "a bracket opened in line 2 is never closed"},
      {"A=1\nB=${x\n", "a bracket opened in line 2 is never closed"},
      {"A=1\n[[ $x == y\n", "a bracket opened in line 2 is never closed"},
      {"A=1\nB=`ls\n", "a quote opened in line 2 is never closed"},
      {"A=1\nB=$'a\n", "a quote opened in line 2 is never closed"},
      {"A=1\ncat <<EOF\nx\n", "a here-document opened in line 2 is never closed"},
      {"A=1\nB=$(cat <<EOF\nx\nEOF)\n", "a here-document opened in line 2 is never closed"},
  };
  for (const auto& [script, why] : rows)
    EXPECT_EQ(replaced(script, {{"A", "0"}}),
              std::string("refused: changing script 'run.sh': ") + why)
        << script;
}

TEST(ShellVariables, WhatNothingAssignsIsReportedWithTheNearest) {
  EXPECT_EQ(
      replaced("NNODES=1\necho NODES=2\n", {{"NNODE", "2"}}),
      "refused: replacing 'NNODE=' in 'run.sh': nothing in it assigns that; nearest: 'NNODES'");
  EXPECT_EQ(replaced("echo\n", {{"NNODES", "2"}}),
            "refused: replacing 'NNODES=' in 'run.sh': nothing in it assigns that");
  EXPECT_EQ(replaced("x=1\nARGS=(\n  --a 1\n)\n", {{"ARGS", "2"}}),
            "refused: replacing 'ARGS=' in 'run.sh': line 2 makes it a list; only single values "
            "are replaced");
}

TEST(ShellVariables, UnfinishedScriptsEnd) {
  for (const char* script : {"A='", "A=\"", "A=$(", "A=${", "A=`", "A=(", "A=$'", "A=\\", "cat <<",
                             "cat <<E\nx", "((", "A=\"$(\"", "A"})
    EXPECT_FALSE(replaced(script, {{"B", "1"}}).empty()) << script;
  EXPECT_NE(replaced(std::string(kFileBytesMax + 1, 'x'), {{"A", "1"}}).find("at most"),
            std::string::npos);
  std::string deep = "A=";
  for (int i = 0; i < 100'000; ++i) deep += "$(";
  EXPECT_EQ(replaced(deep, {{"A", "1"}}),
            "refused: changing script 'run.sh': a bracket opened in line 1 is never closed");
}

}  // namespace
}  // namespace muster::patch
