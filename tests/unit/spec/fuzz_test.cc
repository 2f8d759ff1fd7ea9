// Broken, hostile and merely odd specs: parse_yaml answers in bounded time, and a spec that it
// accepts can be planned.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <random>
#include <sstream>

#include "common/engine/model/engine.h"
#include "common/spec/parse.h"
#include "tests/support/checkout.h"

namespace muster::spec {
namespace {

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    std::ifstream file(test::checkout("tests/golden/spec-errors.txt"));
    std::string text;
    bool input = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("== ")) {
        input = true;
        text.clear();
      } else if (line == "-- said") {
        input = false;
        found.push_back(text);
      } else if (input) {
        text += line + "\n";
      }
    }
    return found;
  }();
  return all;
}

// What the controller finds out about a chain's stages, and about what they take from each other.
v1::ResolvedSpec resolve(const v1::JobSpec& spec, const std::vector<v1::JobSpec>& stages) {
  v1::ResolvedSpec resolved;
  for (const v1::JobSpec& stage : stages) {
    v1::StageDir& dir = *resolved.mutable_stage()->add_dirs();
    dir.set_stage(stage.stage().name());
    dir.set_out("/o/" + stage.stage().name());
  }
  for (const v1::InputSpec& input : spec.inputs())
    (*resolved.mutable_inputs())[input.name()] = "/o/" + input.name();
  return resolved;
}

void check_plan(const v1::JobSpec& spec, const std::vector<v1::JobSpec>& stages,
                const std::string& text) {
  const v1::ResolvedSpec resolved = resolve(spec, stages);
  engine::LaunchRequest request{.spec = &spec,
                                .resolved = &resolved,
                                .job_id = "j",
                                .master_port = 1,
                                .out_dir = "/o",
                                .save_dir = "/o/s"};
  if (spec.has_start()) request.start_dir = "/o/start";
  request.nodes = {{.node = NodeName("n"),
                    .address = "10.0.0.1",
                    .devices = {0, 1},
                    .first_rank = RankNo(0),
                    .rank_count = 2}};
  const auto plan = engine::plan_launch(request);
  EXPECT_TRUE(plan.has_value()) << text << (plan ? "" : plan.error().message);
}

void check(const std::string& text) {
  const Parsed parsed = parse_yaml(text, {.base_dir = "/w"});
  for (const Problem& problem : parsed.problems) EXPECT_FALSE(problem.message.empty());
  EXPECT_LE(parsed.problems.size(), 100u);
  if (!parsed.problems.empty()) return;
  if (parsed.stages.empty()) check_plan(parsed.spec, {}, text);
  for (const v1::JobSpec& stage : parsed.stages) check_plan(stage, parsed.stages, text);
}

TEST(Fuzz, MutatedSpecsAreAnswered) {
  ASSERT_GT(seeds().size(), 40u);
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ": ",
                                "- ",
                                "\n",
                                "  ",
                                "&a ",
                                "*a",
                                "<<: ",
                                "!!int ",
                                "\"",
                                "'",
                                "|",
                                ">",
                                "?",
                                "#",
                                "${rank}",
                                "${",
                                "null",
                                "~",
                                "stages: {a: {}}\n",
                                "after: a",
                                "stage:a",
                                "creates: x\n",
                                "\t",
                                "---\n",
                                "\r",
                                "\xff",
                                "%",
                                "@",
                                "0",
                                "-1"};
  std::mt19937 random(20260101);
  for (int round = 0; round < 2'000; ++round) {
    std::string text = seeds()[random() % seeds().size()];
    for (std::uint32_t i = 1 + random() % 4; i > 0; --i) {
      const std::size_t at = text.empty() ? 0 : random() % text.size();
      switch (random() % 4) {
        case 0: text.insert(at, pieces[random() % std::size(pieces)]); break;
        case 1: text.erase(at, 1 + random() % 8); break;
        case 2:
          if (!text.empty()) text[at] = static_cast<char>(random());
          break;
        default: {
          const std::string& other = seeds()[random() % seeds().size()];
          text = text.substr(0, at) + other.substr(other.empty() ? 0 : random() % other.size());
        }
      }
    }
    check(text);
  }
}

std::string many_keys(int count, const std::string& name, const std::string& end) {
  std::string text;
  for (int i = 0; i < count; ++i) text += name + std::to_string(i) + end;
  return text;
}
std::string many_stages(const std::string& top, const std::string& each) {
  std::string text = "name: c\nengine: torch\nlaunch: {script: a.py}\n" +
                     (top.starts_with("launch") ? "" : top) + "stages:\n";
  if (top.starts_with("launch"))
    text = "name: c\nengine: torch\n" + top.substr(0, 8) + "{script: a.py, " + top.substr(9) +
           "stages:\n";
  for (int i = 0; i < 32; ++i) text += "  s" + std::to_string(i) + ": " + each + "\n";
  return text;
}

// A mebibyte of what is hard for parsers. The bound is of processor time, far above what is needed
// also under a sanitizer, and far below what quadratic work needs.
TEST(Fuzz, HostileSpecsAreBounded) {
  const auto many = [](std::string_view piece) {
    std::string text;
    while (text.size() + piece.size() <= kSpecBytesMax) text += piece;
    return text;
  };
  std::string keys;
  for (int i = 0; keys.size() < kSpecBytesMax - 20; ++i) keys += "k" + std::to_string(i) + ": v\n";
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'z'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [" + [&] {
      std::string s;
      for (int i = 0; i < 9; ++i) s += std::string("*") + static_cast<char>(c - 1) + ",";
      return s;
    }() + "x]\n";
  const std::pair<const char*, std::string> cases[] = {
      {"open lists", many("[")},
      {"open maps", many("{")},
      {"open pairs", many("{a: ")},
      {"dashes", many("- ")},
      {"questions", many("? ")},
      {"same keys", many("a: b\n")},
      {"many keys", keys},
      {"aliases", bomb},
      {"colons", many(": ")},
      {"one word", many("x")},
      {"quotes", many("'a' ")},
      {"an open quote", "a: \"" + many("x").substr(8)},
      {"anchors", many("&a ")},
      {"a long list", "[" + many("a,").substr(8) + "]"},
      {"new lines", many("\n")},
      {"comments", many("#\n")},
      {"arguments",
       "name: x\nengine: torch\nlaunch: {script: a.py, args: '" + many("a ").substr(100) + "'}"},
      {"templates", "name: x\nengine: torch\nlaunch: {script: a.py, args: '" +
                        many("${out} ").substr(100) + "'}"},
      {"too long", many("x") + "yy"},
      {"stages of arguments",
       many_stages("launch: {args: '" + many("a ").substr(500'000) + "'}\n", "{}")},
      {"stages of variables",
       many_stages("runtime: {env: {" + many_keys(1500, "k", ": v, ") + "}}\n",
                   "{runtime: {env: {" + many_keys(1500, "k", ": w, ") + "}}}")},
      {"stages of unknown keys", many_stages("", "{" + many_keys(2500, "k", ": v, ") + "}")},
      {"stages of keys that are open",
       many_stages("", "{launch: {args: {" + many_keys(2500, "k", ": v, ") + "}}}")},
      {"too many stages", "stages: {" + many_keys(40'000, "s", ": {}, ") + "}"},
      {"stages of stages", "stages: {a: " + many("{stages: {a: ").substr(0, 900)},
  };
  for (const auto& [what, text] : cases) {
    const std::clock_t start = std::clock();
    check(text);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 60) << what;
    if (seconds > 0.5) std::printf("  %-14s %.2f s\n", what, seconds);
  }
}

}  // namespace
}  // namespace muster::spec
