#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "common/spec/explain.h"
#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
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
    ASSERT_NE(row.type, nullptr) << row.key;
    for (const std::string_view field : fields_of(row))
      EXPECT_NE(find_field(field), nullptr) << row.key << ": " << field;
    if (row.type->has_field) {
      EXPECT_FALSE(row.accepted.empty()) << row.key;
    }
  }
}

// The words of a choice are values of its field.
TEST(KeyTable, EveryWordOfAChoiceHasAValue) {
  for (const KeyRow& row : key_table()) {
    if (row.type != &kChoice) continue;
    const auto* type = find_field(first_field(row))->enum_type();
    for (const std::string_view word : choices(row.accepted))
      if (type != nullptr && word != row.fallback) {
        EXPECT_NE(enum_value(*type, word), nullptr) << row.key << ": " << word;
      }
  }
}

void collect_leaves(const google::protobuf::Descriptor& type, const std::string& prefix,
                    std::set<std::string>& leaves) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    const std::string path = prefix + field.name();
    const bool inner = !field.is_repeated() && field.message_type() != nullptr &&
                       field.message_type()->file() == type.file();
    if (inner)
      collect_leaves(*field.message_type(), path + ".", leaves);
    else
      leaves.insert(path);
  }
}

TEST(KeyTable, AFieldHasAKey) {
  EXPECT_EQ(key_of_field("observe.step"), "observe.progress.step");
  EXPECT_EQ(key_of_field("output_dir"), "outputs.dir");
  EXPECT_EQ(key_of_field("code.at"), "code.at");
  EXPECT_EQ(key_of_field("runtime.setup[2]"), "runtime.setup[2]");
  EXPECT_EQ(key_of_field("runtime.env.A"), "runtime.env.A");
  EXPECT_EQ(key_of_field("stage.creates"), "stage.creates");
}

// A field that no key sets could only be reached over the API.
TEST(KeyTable, EveryFieldOfTheSpecHasAKey) {
  std::set<std::string> leaves;
  collect_leaves(*v1::JobSpec::descriptor(), "", leaves);
  EXPECT_GT(leaves.size(), 60U);
  for (const KeyRow& row : key_table())
    for (const std::string_view field : fields_of(row)) {
      leaves.erase(std::string(field));
      std::erase_if(leaves, [&](const std::string& leaf) {
        return leaf.starts_with(std::string(field) + ".");
      });
    }
  // `stages` makes these.
  std::erase_if(leaves, [](const std::string& leaf) { return leaf.starts_with("stage."); });
  EXPECT_THAT(leaves, testing::IsEmpty());
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
                          "recovery.backoff",
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
    EXPECT_EQ(named, row.type == &kLater || row.key == "runtime.user") << row.key;
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
    if (find_key(key)->type == &kLater) {
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

// "| key | default | accepted | what |", without the marks of code.
std::string documented_row(const KeyRow& row) {
  const auto cell = [](std::string_view text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '|') escaped += '\\';
      if (c != '`') escaped += c;
    }
    return escaped;
  };
  std::string accepted =
      row.type == &kLater ? "*not in this release*: only the default" : cell(row.accepted);
  if (!row.later.empty()) accepted += fmt::format(" (not in this release: {})", cell(row.later));
  return fmt::format("| {} | {} | {} | {} |", row.key,
                     row.fallback.empty() ? "**required**" : row.fallback, accepted,
                     cell(row.help));
}

// docs/job-spec.md has the table's row of every key, and no other. A row may end with a link.
TEST(Docs, JobSpecHasEveryRow) {
  std::ifstream file(test::checkout("docs/job-spec.md"));
  ASSERT_TRUE(file.is_open());
  const std::regex link(R"(: \[[^\]]*\]\([^)]*\) \|$)");
  std::map<std::string, std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string key = line.substr(3, line.find('`', 3) - 3);
    std::erase(line, '`');
    documented[key] = std::regex_replace(line, link, " |");
  }
  for (const KeyRow& row : key_table()) {
    if (row.type == &kSection || row.type == &kStart) continue;
    EXPECT_EQ(documented[std::string(row.key)], documented_row(row)) << row.key;
  }
  for (const auto& [key, line] : documented)
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
  for (const char* page :
       {"engines/mindformers.md", "engines/megatron.md", "engines/mindspeed-mm.md",
        "engines/torch.md", "engines/deepspeed.md", "engines/command.md"})
    EXPECT_GE(read_examples(page), 1) << page;
}

}  // namespace
}  // namespace muster::spec
