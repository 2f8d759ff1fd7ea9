// tests/golden/spec-errors.txt: every message that a wrong spec can get, reviewed as text. A case
// is a title, the spec (or what overrides the base spec: lines that start with "--set " or "--env
// "), and the messages. MUSTER_REWRITE=1 writes the current messages; read the difference before
// you keep it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/spec/parse.h"
#include "tests/support/checkout.h"

namespace muster::spec {
namespace {

const std::string kPath = test::checkout("tests/golden/spec-errors.txt");
constexpr std::string_view kTitle = "== ", kProblemText = "-- said\n";
constexpr std::string_view kBase = "name: base\nengine: torch\nlaunch: {script: train.py}\n";

struct Case {
  std::string title, input, problem_text;
};

struct Golden {
  std::string head;
  std::vector<Case> cases;
};

Golden read_golden() {
  std::ifstream file(kPath);
  Golden golden;
  std::string line;
  std::string* to = &golden.head;
  while (std::getline(file, line)) {
    if (line.starts_with(kTitle)) {
      golden.cases.push_back({.title = line.substr(kTitle.size())});
      to = &golden.cases.back().input;
    } else if (line + "\n" == kProblemText) {
      to = &golden.cases.back().problem_text;
    } else {
      *to += line + "\n";
    }
  }
  return golden;
}

std::string unescaped(std::string text) {
  for (std::size_t at = 0; (at = text.find("<0xff>", at)) != std::string::npos;)
    text.replace(at, 6, "\xff");
  for (std::size_t at = 0; (at = text.find("<0x00>", at)) != std::string::npos;)
    text.replace(at, 6, 1, '\0');
  return text;
}

std::string say(const std::string& input) {
  ParseOptions options{.base_dir = "/home/ada/exp"};
  std::string text;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (line.starts_with("--set "))
      options.set.emplace_back(line.substr(6, equals - 6), line.substr(equals + 1));
    else if (line.starts_with("--env "))
      options.env.emplace_back(line.substr(6, equals - 6), line.substr(equals + 1));
    else
      text += line + "\n";
  }
  while (text.ends_with("\n\n")) text.pop_back();
  if (text.empty() || text == "\n")
    text = options.set.empty() && options.env.empty() ? "" : std::string(kBase);
  const Parsed parsed = parse_yaml(unescaped(text), options);
  const std::string problem_text = format(parsed.problems, "job.yaml");
  return problem_text.empty() ? "nothing\n" : problem_text;
}

TEST(SpecErrors, SayWhatTheGoldenFileSays) {
  Golden golden = read_golden();
  ASSERT_GT(golden.cases.size(), 40u) << kPath;
  std::string rewritten = golden.head;
  for (const Case& one : golden.cases) {
    const std::string problem_text = say(one.input);
    const std::string want =
        one.problem_text.substr(0, one.problem_text.find_last_not_of('\n') + 1) + "\n";
    if (std::getenv("MUSTER_REWRITE") == nullptr) {
      EXPECT_EQ(problem_text, want) << "case: " << one.title << "\n" << one.input;
    }
    rewritten +=
        fmt::format("{}{}\n{}{}{}\n", kTitle, one.title, one.input, kProblemText, problem_text);
  }
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(kPath) << rewritten;
}

void expect_ten(std::string_view text) {
  const Parsed parsed = parse_yaml(text, {.base_dir = "/w"});
  EXPECT_EQ(parsed.problems.size(), 10u) << format(parsed.problems, "job.yaml");
  for (const Problem& problem : parsed.problems) {
    EXPECT_GT(problem.line, 0u) << problem.message;
    EXPECT_GT(problem.column, 0u) << problem.message;
  }
  EXPECT_TRUE(std::ranges::is_sorted(parsed.problems, {}, &Problem::line));
}

TEST(SpecErrors, TenMistakesGetTenMessagesWithPlaces) {
  expect_ten(
      "name: Bad Name\n"      // 1
      "engine: tensorflow\n"  // 2
      "launch:\n"
      "  scrpt: train.py\n"            // 3
      "  per: host\n"                  // 4
      "  args: --load ${resum.dir}\n"  // 5
      "resources:\n"
      "  nodes: two\n"                  // 6
      "  devices: [4, 4]\n"             // 7
      "runtime: {env: {1BAD: x}}\n"     // 8
      "recovery: {orphan_grace: 30}\n"  // 9
      "notify: [me]\n");                // 10
}

// Regression: a section with a misspelled name was skipped as a whole: its mistakes were found one
// `muster run` later.
TEST(SpecErrors, TenMistakesBelowMisspeltKeysGetTenMessages) {
  expect_ten(
      "nam: Bad Name\n"  // 1, 2
      "engine: torch\n"
      "lanch:\n"  // 3
      "  script: a.py\n"
      "  per: host\n"                  // 4
      "  args: --load ${resum.dir}\n"  // 5
      "resource:\n"                    // 6
      "  nodes: two\n"                 // 7
      "  device: [4, 4]\n"             // 8, 9
      "runtime: {env: {1BAD: x}}\n");  // 10
}

}  // namespace
}  // namespace muster::spec
