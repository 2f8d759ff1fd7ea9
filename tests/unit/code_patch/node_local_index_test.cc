// builtin:node-local-index on the forms that its lines have in Megatron-LM's releases
// (tests/fixtures/megatron-lm).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "common/compat/code_patch/builtin.h"
#include "tests/support/checkout.h"

namespace muster::code_patch {
namespace {

namespace fs = std::filesystem;
using Tree = std::map<std::string, std::string>;

Tree read_tree(const fs::path& dir) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    tree[entry.path().lexically_relative(dir).string()] = {std::istreambuf_iterator<char>(file),
                                                           {}};
  }
  return tree;
}

Tree release(const std::string& name) {
  return read_tree(fs::path(test::checkout("tests/fixtures/megatron-lm")) / name);
}

Result<std::vector<ChangedSource>> patched(const Tree& tree) {
  return find_builtin("node-local-index")
      ->make([&](const std::string& name) -> Result<std::optional<std::string>> {
        const auto found = tree.find(name);
        return found == tree.end() ? std::optional<std::string>() : std::optional(found->second);
      });
}

// The changed lines, "- old" and "+ new"; what is appended at the end is left out.
std::string changes(const std::string& before, const std::string& after) {
  std::string out;
  std::size_t a = 0, b = 0;
  while (a < before.size()) {
    const std::size_t a_end = before.find('\n', a), b_end = after.find('\n', b);
    const std::string old_line = before.substr(a, a_end - a), new_line = after.substr(b, b_end - b);
    if (old_line != new_line) out += "-" + old_line + "\n+" + new_line + "\n";
    a = a_end + 1;
    b = b_end + 1;
  }
  return out;
}

TEST(NodeLocalIndex, EveryFormIsChangedWhereRankZeroIsAskedFor) {
  const std::map<std::string, std::string> gpt = {
      {"core_v0.4.0",
       "-        if not cache_hit and torch.distributed.get_rank() == 0:\n+        if not "
       "cache_hit and True:\n"},
      {"core_v0.6.0",
       "-            not torch.distributed.is_initialized() or torch.distributed.get_rank() == "
       "0\n+            not torch.distributed.is_initialized() or True\n"},
      {"core_v0.12.0",
       "-            and (not torch.distributed.is_initialized() or torch.distributed.get_rank() "
       "== 0)\n+            and (not torch.distributed.is_initialized() or True)\n"},
      {"core_v0.19.0",
       "-            and (not torch.distributed.is_initialized() or torch.distributed.get_rank() "
       "== 0)\n+            and (not torch.distributed.is_initialized() or True)\n"}};
  for (const auto& [name, lines] : gpt) {
    SCOPED_TRACE(name);
    const Tree tree = release(name);
    ASSERT_FALSE(tree.empty());
    const auto changed = patched(tree);
    ASSERT_TRUE(changed) << changed.error().message;
    Tree now;
    for (const ChangedSource& file : *changed) now[file.name] = file.text;
    EXPECT_EQ(now.size(), tree.size() + 1) << "every file that is there, and the helper";
    EXPECT_EQ(changes(tree.at("megatron/core/datasets/gpt_dataset.py"),
                      now.at("megatron/core/datasets/gpt_dataset.py")),
              lines);
    EXPECT_TRUE(
        now.at("megatron/core/datasets/gpt_dataset.py")
            .ends_with("\nfrom megatron.core.datasets.muster_node_local_index import "
                       "one_builder_a_node  # noqa: E402\n\n"
                       "GPTDataset._build_document_sample_shuffle_indices = "
                       "one_builder_a_node(GPTDataset._build_document_sample_shuffle_indices)\n"));
    const std::string blended = changes(tree.at("megatron/core/datasets/blended_dataset.py"),
                                        now.at("megatron/core/datasets/blended_dataset.py"));
    EXPECT_EQ(blended, name == "core_v0.19.0"
                           ? lines
                           : "-        if not path_to_cache or (not cache_hit and "
                             "torch.distributed.get_rank() == 0):\n"
                             "+        if not path_to_cache or (not cache_hit and True):\n");
    if (tree.contains("megatron/core/datasets/masked_dataset.py")) {
      EXPECT_EQ(changes(tree.at("megatron/core/datasets/masked_dataset.py"),
                        now.at("megatron/core/datasets/masked_dataset.py")),
                "-        if not cache_hit and torch.distributed.get_rank() == 0:\n+        if not "
                "cache_hit and True:\n");
    }
    const std::string initialize = tree.contains("megatron/initialize.py")
                                       ? "megatron/initialize.py"
                                       : "megatron/training/initialize.py";
    EXPECT_EQ(changes(tree.at(initialize), now.at(initialize)),
              "-    if torch.distributed.get_rank() == 0:\n"
              "+    if int(__import__(\"os\").environ.get(\"LOCAL_RANK\", \"0\")) == 0:  # muster, "
              "builtin:node-local-index\n")
        << "the one where the helpers are compiled, not that of the fused kernels";
    EXPECT_NE(now.at("megatron/core/datasets/muster_node_local_index.py").find("fcntl.LOCK_EX"),
              std::string::npos);
  }
}

std::string why(const Tree& tree) {
  const auto changed = patched(tree);
  return changed ? "changed" : changed.error().message;
}

TEST(NodeLocalIndex, WhatItDoesNotKnowNamesTheFile) {
  const std::string known =
      "; it knows Megatron-LM of megatron-core 0.4 to 0.19: leave the patch out and copy the index "
      "files to every node, or write a diff";
  const std::string gpt = "megatron/core/datasets/gpt_dataset.py",
                    blended = "megatron/core/datasets/blended_dataset.py";
  EXPECT_EQ(why({}),
            "'" + gpt + "' is not there: code.from has to be the Megatron-LM tree" + known);

  Tree tree = release("core_v0.12.0");
  tree[gpt] = "class GPTDataset(MegatronDataset):\n    pass\n";
  EXPECT_EQ(why(tree),
            "'" + gpt + "' has no GPTDataset._build_document_sample_shuffle_indices()" + known);

  tree = release("core_v0.12.0");
  std::string& text = tree[blended];
  const std::string line = "torch.distributed.get_rank() == 0";
  text.replace(text.find(line), line.size(), "parallel_state.is_rank_0()");
  EXPECT_EQ(why(tree),
            "'" + blended +
                "' has none of the known lines that ask for rank 0 before it builds index files" +
                known);

  tree = release("core_v0.12.0");
  tree[gpt] +=
      "            and (not torch.distributed.is_initialized() or torch.distributed.get_rank() == "
      "0)\n";
  EXPECT_EQ(why(tree),
            "'" + gpt +
                "' has more than one line that asks for rank 0 before it builds index files" +
                known);

  tree = release("core_v0.12.0");
  tree["megatron/training/initialize.py"] =
      "def _compile_dependencies():\n    pass\n\ndef f():\n    if torch.distributed.get_rank() == "
      "0:\n        compile_helpers()\n";
  EXPECT_EQ(why(tree),
            "'megatron/training/initialize.py' has no known form of _compile_dependencies(), where "
            "rank 0 compiles the helpers" +
                known);
  tree.erase("megatron/training/initialize.py");
  EXPECT_EQ(why(tree), "'megatron/training/initialize.py' is not there" + known);
}

TEST(NodeLocalIndex, CodeThatHasItsOwnWayOrHasItAlready) {
  Tree tree = release("core_v0.6.0");
  tree["mindspeed_llm/core/datasets/gpt_dataset.py"] = "";
  EXPECT_EQ(why(tree),
            "'mindspeed_llm/core/datasets/gpt_dataset.py' is there: MindSpeed-LLM builds index "
            "files by functions of its own, and on every node with its --no-shared-storage; put "
            "that into launch.args and leave the patch out");
  tree = release("core_v0.6.0");
  const auto changed = patched(tree);
  ASSERT_TRUE(changed);
  for (const ChangedSource& file : *changed) tree[file.name] = file.text;
  EXPECT_EQ(why(tree),
            "'megatron/core/datasets/gpt_dataset.py' has it already: code.from is a copy that was "
            "patched before");
}

}  // namespace
}  // namespace muster::code_patch
