#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "common/spec/explain.h"
#include "common/spec/key_table.h"
#include "common/spec/read_spec.h"
#include "common/text/words.h"
#include "tests/support/checkout.h"

namespace muster::spec {
namespace {

TEST(KeyTable, IsSound) {
  std::set<std::string_view> seen;
  for (const KeyRow& row : key_table()) {
    EXPECT_TRUE(seen.insert(row.key).second) << row.key << " is there twice";
    EXPECT_FALSE(row.help.empty()) << row.key;
    const std::size_t dot = row.key.rfind('.');
    if (dot != std::string_view::npos) {
      EXPECT_TRUE(seen.contains(row.key.substr(0, dot))) << row.key << " has no section before it";
    }
    EXPECT_TRUE(read_tree(row.fallback, false).problems.empty()) << row.key;
    if (row.kind == KeyKind::Section || row.kind == KeyKind::Later) {
      EXPECT_FALSE(SpecReader::has_reader(row.key)) << row.key;
      continue;
    }
    EXPECT_TRUE(SpecReader::has_reader(row.key)) << row.key;
    EXPECT_FALSE(row.accepted.empty()) << row.key;
    if (row.kind == KeyKind::Choice) {
      EXPECT_FALSE(row.accepted.empty()) << row.key;
    }
  }
}

// The list of the design: a key that is dropped from the table would be "unknown" to users who read
// about it.
TEST(KeyTable, KnowsEveryKeyOfTheDesign) {
  for (const char* key : {"name",
                          "description",
                          "labels",
                          "compat",
                          "engine",
                          "code.from",
                          "code.at",
                          "code.exclude",
                          "code.patches",
                          "code.parts",
                          "runtime.image",
                          "runtime.python",
                          "runtime.setup",
                          "runtime.requirements",
                          "runtime.env",
                          "runtime.mounts",
                          "runtime.user",
                          "runtime.limits.nofile",
                          "runtime.limits.memlock",
                          "runtime.limits.memory",
                          "runtime.limits.cpus",
                          "launch.per",
                          "launch.run",
                          "launch.script",
                          "launch.config",
                          "launch.mode",
                          "launch.launcher",
                          "launch.intercept",
                          "launch.args",
                          "launch.patch",
                          "launch.vars",
                          "launch.cwd",
                          "launch.lockstep",
                          "resources.nodes",
                          "resources.devices",
                          "resources.type",
                          "resources.hosts",
                          "resources.select",
                          "resources.rank_table",
                          "resources.spares",
                          "resources.min_nodes",
                          "network.interface",
                          "network.master_port",
                          "inputs",
                          "start.from",
                          "start.as",
                          "start.step",
                          "start.reshard",
                          "checkpoint.dir",
                          "checkpoint.storage",
                          "checkpoint.keep",
                          "checkpoint.mirror",
                          "resume",
                          "resume.args",
                          "resume.drop",
                          "resume.env",
                          "resume.patch",
                          "resume.vars",
                          "outputs.to",
                          "outputs.every",
                          "outputs.logs_to",
                          "outputs.include",
                          "observe.profile",
                          "observe.dump",
                          "observe.plog",
                          "observe.progress",
                          "success",
                          "checks",
                          "recovery.max_restarts",
                          "recovery.window",
                          "recovery.hang_timeout",
                          "recovery.orphan_grace",
                          "recovery.avoid_failed_node",
                          "recovery.on",
                          "schedule.queue",
                          "schedule.priority",
                          "schedule.time_limit",
                          "schedule.after",
                          "notify",
                          "stages"})
    EXPECT_NE(find_key(key), nullptr) << key;
}

// An alias that is also a key of the same section would never be reached; an alias in two rows
// would be a guess.
TEST(KeyTable, AliasesAreUniqueAndNoKeysOfTheirSection) {
  std::set<std::string> met;
  for (const KeyRow& row : key_table()) {
    std::istringstream words{std::string(row.aliases)};
    const std::size_t dot = row.key.rfind('.');
    const std::string_view section = dot == std::string_view::npos ? "" : row.key.substr(0, dot);
    for (std::string word; words >> word;) {
      EXPECT_TRUE(met.insert(word).second) << word << " is there twice";
      EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
          << word;
      EXPECT_EQ(find_alias("", word), &row) << word;
      for (const KeyRow* other : keys_below(section)) EXPECT_NE(leaf(other->key), word);
    }
  }
  EXPECT_EQ(find_alias("launch", "NProc-Per-Node")->key, "resources.devices");
  EXPECT_EQ(find_alias("", "tensorflow"), nullptr);
}

// Regression: "What is not here yet" named three features of twenty keys.
TEST(KeyTable, TheReadmeNamesWhatIsNotInThisRelease) {
  std::ifstream file(test::checkout("README.md"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = text.find("## What is not here yet");
  ASSERT_NE(at, std::string::npos);
  std::string_view rest = std::string_view(text).substr(at);
  for (const KeyRow& row : key_table()) {
    const bool named = rest.find("`" + std::string(row.key) + "`") != std::string_view::npos;
    EXPECT_EQ(named, row.kind == KeyKind::Later || row.key == "runtime.user") << row.key;
    if (!row.later.empty()) {
      EXPECT_NE(rest.find("`" + std::string(row.key) + ": " + std::string(row.later) + "`"),
                std::string_view::npos)
          << row.key;
    }
  }
}

TEST(Explain, HasWordsForEveryKey) {
  for (const std::string_view key : known_keys()) {
    const auto text = explain(key);
    ASSERT_TRUE(text) << key;
    EXPECT_TRUE(text->starts_with(std::string(key) + ": ")) << *text;
    if (find_key(key)->kind == KeyKind::Later) {
      EXPECT_NE(text->find("not in this release"), std::string::npos) << *text;
    }
  }
  EXPECT_NE(explain("")->find("launch"), std::string::npos);
  EXPECT_NE(explain("engine")->find("torch"), std::string::npos);
  EXPECT_EQ(explain("launch.scrpt").error().message,
            "explaining 'launch.scrpt': no such key; did you mean 'launch.script'?");
  EXPECT_EQ(explain("script").error().message,
            "explaining 'script': no such key; did you mean 'launch.script'?");
  EXPECT_EQ(explain("gpus").error().message,
            "explaining 'gpus': no such key; did you mean 'resources.devices'?");
  EXPECT_EQ(explain("quite another thing").error().message,
            "explaining 'quite another thing': no such key; `muster explain` lists them");
}

// The message for a misspelled key names the right one: a letter dropped, doubled, or exchanged
// with its neighbor.
TEST(KeyTable, AMisspeltKeyGetsTheRightOne) {
  int asked = 0, corrected = 0;
  for (const KeyRow& row : key_table()) {
    const std::string word(leaf(row.key));
    if (word.size() < 5) continue;
    const std::string_view section =
        row.key.substr(0, row.key.size() - word.size() - (row.key.size() > word.size() ? 1 : 0));
    std::vector<std::string_view> here;
    for (const KeyRow* other : keys_below(section)) here.push_back(leaf(other->key));
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      std::string dropped = word, doubled = word, swapped = word;
      dropped.erase(i, 1);
      doubled.insert(i, 1, word[i]);
      std::swap(swapped[i], swapped[i + 1]);
      for (const std::string& wrong : {dropped, doubled, swapped}) {
        if (wrong == word) continue;
        ++asked;
        corrected += nearest(wrong, here) == word ? 1 : 0;
      }
    }
  }
  EXPECT_GT(asked, 800);
  EXPECT_EQ(corrected, asked);
}

// docs/job-spec.md has a heading or a table row that starts with `key` for every key, and for no
// other.
TEST(Docs, JobSpecHasEveryKey) {
  std::ifstream file(test::checkout("docs/job-spec.md"));
  ASSERT_TRUE(file.is_open());
  std::set<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    documented.insert(line.substr(3, line.find('`', 3) - 3));
  }
  for (const std::string_view key : known_keys())
    if (find_key(key)->kind != KeyKind::Section) {
      EXPECT_TRUE(documented.contains(std::string(key)))
          << "docs/job-spec.md does not have `" << key << "`";
    }
  for (const std::string& key : documented)
    if (!key.starts_with("${") && !key.starts_with("MUSTER_")) {
      EXPECT_NE(find_key(key), nullptr) << "docs/job-spec.md has `" << key << "`, which is no key";
    }
}

// Examples are there to be copied, so they must work: every example is put over a sound spec and
// read. Returns how many there are.
int read_examples(const std::string& page) {
  std::ifstream file(test::checkout("docs/") + page);
  std::string example;
  bool inside = false;
  int examples = 0;
  for (std::string line; std::getline(file, line);) {
    if (line == "```yaml") {
      inside = true;
      example.clear();
    } else if (inside && line == "```") {
      inside = false;
      ++examples;
      const Tree tree = read_tree(example, true);
      EXPECT_TRUE(tree.problems.empty()) << example;
      for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
               {"name", "name: x\n"},
               {"engine", "engine: torch\n"},
               {"launch", "launch: {script: a.py}\n"}})
        if (tree.root.get(key) == nullptr) example += value;
      EXPECT_EQ(format(parse_yaml(example, {.base_dir = "/w"}).problems, page), "") << example;
    } else if (inside) {
      example += line + "\n";
    }
  }
  return examples;
}

TEST(Docs, ExamplesOfJobSpecAreSound) { EXPECT_GE(read_examples("job-spec.md"), 8); }

TEST(Docs, ExamplesOfTheEnginesAreSound) {
  for (const char* page : {"engines/mindformers.md", "engines/megatron.md",
                           "engines/mindspeed-mm.md", "engines/torch.md", "engines/command.md"})
    EXPECT_GE(read_examples(page), 1) << page;
}

}  // namespace
}  // namespace muster::spec
