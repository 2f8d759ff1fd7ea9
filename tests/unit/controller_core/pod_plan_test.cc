#include "controller/core/placement/pod_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster::core {
namespace {

std::string text(const PodPlan& plan) {
  std::string out;
  for (const auto& [pod, nodes] : plan)
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", pod.empty() ? "-" : pod, nodes);
  return out;
}

struct Case {
  const char* what;
  std::vector<PodRoom> rooms;
  std::size_t nodes;
  PodRule rule;
  PodPlan last;
  const char* plans;  // the first plan, then " | " and the next
};

TEST(PodPlan, TakesFewPodsAndLeavesLargeOnesWhole) {
  const auto room = [](const char* id, std::size_t nodes) {
    return PodRoom{.id = id, .nodes = nodes, .addressed = nodes};
  };
  const auto bare = [](const char* id, std::size_t nodes) {
    return PodRoom{.id = id, .nodes = nodes};
  };
  using enum PodRule;
  for (const Case& one : {
           Case{"the smallest that holds it",
                {room("a", 8), room("b", 3), room("c", 2)},
                2,
                Prefer,
                {},
                "c:2"},
           Case{"where it was",
                {room("a", 8), room("b", 3), room("c", 2)},
                2,
                Prefer,
                {{"b", 2}},
                "b:2 | b:2"},
           Case{"where it was has no room",
                {room("a", 8), room("b", 1), room("c", 2)},
                2,
                Prefer,
                {{"b", 2}},
                "c:2"},
           Case{
               "two, evenly", {room("a", 4), room("b", 3), room("c", 3)}, 6, Prefer, {}, "b:3 c:3"},
           Case{"two, as full as can be",
                {room("a", 5), room("b", 2), room("c", 1)},
                6,
                Prefer,
                {},
                "a:5 c:1"},
           Case{"it was spread, and one pod holds it now",
                {room("a", 4), room("b", 2)},
                4,
                Prefer,
                {{"a", 2}, {"b", 2}},
                "a:4"},
           Case{"nodes in none count as one more",
                {room("", 2), room("a", 2)},
                4,
                Prefer,
                {},
                "-:2 a:2"},
           Case{"too few", {room("a", 1), room("b", 1)}, 3, Prefer, {}, ""},
           Case{"a table: one pod, else as many of two",
                {room("a", 3), room("b", 4), room("c", 2)},
                4,
                Table,
                {},
                "b:4 | a:2 c:2"},
           Case{"a table: never unevenly", {room("a", 2), room("b", 1)}, 3, Table, {}, ""},
           Case{"a table: three of one each",
                {room("a", 2), room("b", 1), room("c", 1)},
                3,
                Table,
                {},
                "a:1 b:1 c:1"},
           Case{"a table over two pods needs addresses",
                {bare("a", 2), room("b", 2)},
                4,
                Table,
                {},
                ""},
           Case{"a table in one pod needs none", {bare("a", 4)}, 4, Table, {}, "a:4"},
           Case{"a table: never with nodes that are in none",
                {room("", 2), room("a", 2)},
                4,
                Table,
                {},
                ""},
           Case{"a table: or all in none", {room("", 4), room("a", 3)}, 4, Table, {}, "-:4"},
           Case{"a table: where it was",
                {room("a", 2), room("b", 2)},
                2,
                Table,
                {{"b", 2}},
                "b:2 | a:1 b:1"},
           Case{"nothing at all", {}, 2, Table, {}, ""},
       }) {
    std::string plans;
    for (const PodPlan& plan : pod_plans(one.rooms, one.nodes, one.rule, one.last))
      plans += (plans.empty() ? "" : " | ") + text(plan);
    EXPECT_EQ(plans, one.plans) << one.what;
  }
}

}  // namespace
}  // namespace muster::core
