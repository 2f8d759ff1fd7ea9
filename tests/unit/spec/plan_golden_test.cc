// tests/unit/spec/plans/*.txt: what every rank of a spec gets, in full. A case has its title, the
// spec, its placement, and the plan.
//
//   -- placed ascend 0-7 0-7        kind of the devices, then those of each node
//   -- placed ascend 4-7 resume 40  an attempt 2 that resumes from step 40 of attempt 1
//
// MUSTER_REWRITE=1 writes the current plans; read the difference before you keep it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "common/digest/sha256.h"
#include "common/engine/model/engine.h"
#include "common/engine/ranktable/table_text.h"
#include "common/spec/parse.h"
#include "tests/support/checkout.h"

namespace muster::spec {
namespace {

const std::string kDir = test::checkout("tests/unit/spec/plans/");
constexpr std::string_view kTitle = "== ", kPlaced = "-- placed ", kPlan = "-- plan";

struct Case {
  std::string title, spec, placed, plan;
};

struct Golden {
  std::string head;
  std::vector<Case> cases;
};

Golden read_golden(const std::string& path) {
  std::ifstream file(path);
  Golden golden;
  std::string* to = &golden.head;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kTitle)) {
      golden.cases.push_back({.title = line.substr(kTitle.size())});
      to = &golden.cases.back().spec;
    } else if (line.starts_with(kPlaced)) {
      golden.cases.back().placed = line.substr(kPlaced.size());
    } else if (line == kPlan) {
      to = &golden.cases.back().plan;
    } else {
      *to += line + "\n";
    }
  }
  return golden;
}

// Nodes as in the vendor's sample tables: 10.20.0.11, .12 with cards 192.1.11.10, 192.2.11.17 ...
engine::PlacedNode slot(std::size_t index, const std::string& kind, const std::string& devices) {
  const auto dash = devices.find('-');
  const unsigned first = static_cast<unsigned>(std::stoul(devices)),
                 last = dash == std::string::npos
                            ? first
                            : static_cast<unsigned>(std::stoul(devices.substr(dash + 1)));
  engine::PlacedNode node{.node = NodeName(fmt::format("n{}", index + 1)),
                          .address = fmt::format("10.20.0.{}", 11 + index),
                          .device_type = kind,
                          .interface = "eth2"};
  if (kind == "ascend") node.device_model = "910B3";
  for (unsigned device = first; device <= last; ++device) {
    node.devices.push_back(device);
    if (kind == "ascend")
      node.device_ips.push_back(
          fmt::format("192.{}.{}.{}", 1 + device % 4, 11 + index, 10 + 7 * device));
  }
  return node;
}

engine::LaunchRequest place(const v1::JobSpec& spec, const std::string& placed) {
  engine::LaunchRequest request{
      .spec = &spec, .job_id = "01j8x4a0b7c2d", .attempt = 1, .master_port = 29500};
  std::istringstream words(placed);
  std::string kind, word;
  words >> kind;
  std::uint32_t ranks = 0;
  std::int64_t step = -1;
  while (words >> word) {
    if (word == "resume") {
      words >> step;
      break;
    }
    engine::PlacedNode node = slot(request.nodes.size(), kind, word);
    node.first_rank = RankNo(ranks);
    node.rank_count = static_cast<std::uint32_t>(node.devices.size());
    ranks += node.rank_count;
    request.nodes.push_back(std::move(node));
  }
  if (step >= 0) request.attempt = 2;
  request.out_dir = engine::out_dir(spec, request.job_id, "/shared/muster");
  request.save_dir = engine::save_dir(spec, request.out_dir, request.attempt);
  if (step >= 0) {
    request.resume_dir = engine::resume_dir(spec, request.out_dir, request.attempt);
    request.resume_step = step;
    request.resume_source = engine::save_dir(spec, request.out_dir, 1);
  }
  return request;
}

using Environment = std::map<std::string, engine::Value>;

std::string shown_word(const std::string& word) {
  return word.empty() || word.find(' ') != std::string::npos ? "'" + word + "'" : word;
}

void render_process(std::string& text, const std::vector<std::string>& argv,
                    const std::vector<std::string>& sources, const std::string& cwd) {
  text += fmt::format("  in {}\n", cwd);
  for (std::size_t i = 0; i < argv.size(); ++i)
    text +=
        fmt::format("  {:<48} {}\n", shown_word(argv[i]), i < sources.size() ? sources[i] : "?");
}

// A table's devices, one a line; the test PlanTable checks its bytes.
void render_table(std::string& text, const std::string& json) {
  std::istringstream lines(json);
  std::string server, device;
  for (std::string line; std::getline(lines, line);) {
    const auto value = [&](const char* key) -> std::optional<std::string> {
      const auto at = line.find(fmt::format("\"{}\": \"", key));
      if (at == std::string::npos) return std::nullopt;
      const auto from = line.find(": \"", at) + 3;
      return line.substr(from, line.find('"', from) - from);
    };
    if (const auto id = value("server_id")) server = *id;
    if (const auto id = value("device_id")) device = *id;
    if (const auto ip = value("device_ip")) device += " " + *ip;
    if (const auto rank = value("rank_id"))
      text += fmt::format("  {} device {} rank {}\n", server, device, *rank);
  }
}

void render_variable(std::string& text, const std::string& name, const engine::Value& value) {
  text += fmt::format("  {:<48} {}\n", name + "=" + value.text, value.source);
}

std::string render(const engine::LaunchRequest& request, const engine::LaunchPlan& plan) {
  std::string text;
  const v1::NodeLaunch order = engine::node_launch(request, plan, 0);
  std::set<std::string> written;
  for (const engine::FilePlan& file : plan.files) {
    text += fmt::format("file on node {}: {} {:04o} sha256 {}\n", file.node, file.path, file.mode,
                        file.sha256.substr(0, 16));
    if (written.insert(*file.content).second) render_table(text, *file.content);
  }
  for (const std::string& dir : order.make_dirs())
    text += fmt::format("directory on node 0: {}\n", dir);
  // A variable that is equal for all ranks is written once.
  Environment common = plan.ranks.front().env;
  std::erase_if(common, [&](const auto& variable) {
    return !std::ranges::all_of(plan.ranks, [&](const engine::RankPlan& rank) {
      const auto found = rank.env.find(variable.first);
      return found != rank.env.end() && found->second.text == variable.second.text;
    });
  });
  text += "rank 0\n";
  render_process(text, plan.ranks.front().argv, plan.argv_sources, plan.ranks.front().cwd);
  text += "every rank\n";
  for (const auto& [name, value] : common) render_variable(text, name, value);
  for (const engine::RankPlan& rank : plan.ranks) {
    text += fmt::format("rank {} on node {} device", rank.rank, rank.node);
    for (const std::uint32_t device : rank.devices) text += fmt::format(" {}", device);
    for (const auto& [name, value] : rank.env)
      if (!common.contains(name) && !name.starts_with("MUSTER_"))
        text += fmt::format(" {}={}", name, value.text);
    if (rank.cwd != plan.ranks.front().cwd) text += fmt::format(" in {}", rank.cwd);
    for (std::size_t i = 0; i < rank.argv.size(); ++i)
      if (rank.argv[i] != plan.ranks.front().argv[i])
        text += fmt::format(" argv[{}]={}", i, rank.argv[i]);
    text += "\n";
  }
  for (const engine::AuxiliaryPlan& auxiliary : plan.auxiliaries) {
    text += fmt::format("auxiliary process '{}' on node {}\n  in {}\n", auxiliary.name,
                        auxiliary.node, auxiliary.cwd);
    for (std::size_t i = 0; i < auxiliary.argv.size(); ++i)
      if (i >= plan.ranks.front().argv.size() || auxiliary.argv[i] != plan.ranks.front().argv[i])
        text += fmt::format("  argv[{}]={}\n", i, auxiliary.argv[i]);
    for (const auto& [name, value] : auxiliary.env)
      if (const auto found = common.find(name);
          found == common.end() || found->second.text != value.text)
        render_variable(text, name, value);
    for (const auto& [name, value] : common)
      if (!auxiliary.env.contains(name)) text += fmt::format("  {} is not set\n", name);
  }
  text += fmt::format("watched: grammar {}, layout {} in {}\n", plan.watching.grammar(),
                      plan.watching.layout(), plan.watching.save_dir());
  return text;
}

std::string planned(const Case& one) {
  const Parsed parsed = parse_yaml(one.spec, {.base_dir = "/home/ada/exp"});
  if (!parsed.problems.empty()) return format(parsed.problems, "job.yaml");
  const engine::LaunchRequest request = place(parsed.spec, one.placed);
  const auto plan = engine::plan_launch(request);
  return plan ? render(request, *plan) : "refused: " + plan.error().message + "\n";
}

class PlanGolden : public testing::TestWithParam<const char*> {};

TEST_P(PlanGolden, IsWhatIsPlanned) {
  const std::string path = kDir + GetParam() + ".txt";
  const Golden golden = read_golden(path);
  ASSERT_GT(golden.cases.size(), 0u) << path;
  std::string rewritten = golden.head;
  for (const Case& one : golden.cases) {
    const std::string plan = planned(one);
    if (std::getenv("MUSTER_REWRITE") == nullptr) {
      const std::string want = one.plan.substr(0, one.plan.find_last_not_of('\n') + 1) + "\n";
      EXPECT_EQ(plan, want) << "case: " << one.title;
    }
    const std::string spec = one.spec.substr(0, one.spec.find_last_not_of('\n') + 1);
    rewritten += fmt::format("{}{}\n{}\n{}{}\n{}\n{}\n", kTitle, one.title, spec, kPlaced,
                             one.placed, kPlan, plan);
  }
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(path) << rewritten;
}

INSTANTIATE_TEST_SUITE_P(Engines, PlanGolden,
                         testing::Values("mindformers", "megatron", "mindspeed-mm", "torch",
                                         "deepspeed"),
                         [](const auto& one) {
                           return one.param == std::string("mindspeed-mm")
                                      ? std::string("mindspeed_mm")
                                      : std::string(one.param);
                         });

// The table of the vendor's own tools, for the same two servers.
TEST(PlanTable, IsTheVendorsByteForByte) {
  const Parsed parsed = parse_yaml(
      "name: x\nengine: mindformers\nlaunch: {config: a.yaml}\nresources: {nodes: 2, type: "
      "ascend}\n",
      {.base_dir = "/home/ada/exp"});
  ASSERT_TRUE(parsed.problems.empty()) << format(parsed.problems, "x");
  std::ifstream file(test::checkout("tests/unit/ranktable/golden/hccl_2s_16p.json"));
  std::stringstream want;
  want << file.rdbuf();
  ASSERT_GT(want.str().size(), 1000u);
  const auto plan = engine::plan_launch(place(parsed.spec, "ascend 0-7 0-7"));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_NE(plan->table, nullptr);
  EXPECT_EQ(plan->table->bytes, want.str());
  EXPECT_EQ(plan->table->hash, sha256_hex(want.str()));
}

}  // namespace
}  // namespace muster::spec
