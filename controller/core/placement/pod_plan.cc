#include "controller/core/placement/pod_plan.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace muster::core {
namespace {

using Rooms = std::vector<const PodRoom*>;

std::size_t had(const PodPlan& last, const std::string& pod) {
  const auto found = last.find(pod);
  return found == last.end() ? 0 : found->second;
}

// Takes `count` super-pods with room for `share`: first those where the job was, then those that it
// fills best.
PodPlan even_plan(Rooms able, std::size_t count, std::size_t share, const PodPlan& last) {
  PodPlan plan;
  if (able.size() < count) return plan;
  std::ranges::sort(able, {}, [&](const PodRoom* room) {
    return std::tuple(had(last, room->id) == 0, room->nodes, std::string_view(room->id));
  });
  for (std::size_t i = 0; i < count; ++i) plan.emplace(able[i]->id, share);
  return plan;
}

template <class Able>
Rooms those(const std::vector<PodRoom>& rooms, const Able& able) {
  Rooms found;
  for (const PodRoom& room : rooms) {
    if (able(room)) found.push_back(&room);
  }
  return found;
}

std::vector<PodPlan> for_table(const std::vector<PodRoom>& rooms, std::size_t nodes,
                               const PodPlan& last) {
  std::vector<PodPlan> plans;
  const auto add = [&](PodPlan plan) {
    if (!plan.empty()) plans.push_back(std::move(plan));
  };
  const std::size_t pods =
      those(rooms, [](const PodRoom& room) { return !room.id.empty(); }).size();
  for (std::size_t count = 1; count <= std::min(pods, nodes); ++count) {
    if (nodes % count != 0) continue;
    const std::size_t share = nodes / count;
    const auto able = those(rooms, [&](const PodRoom& room) {
      return !room.id.empty() && (count == 1 ? room.nodes : room.addressed) >= share;
    });
    add(even_plan(able, count, share, last));
  }
  add(even_plan(
      those(rooms, [&](const PodRoom& room) { return room.id.empty() && room.nodes >= nodes; }), 1,
      nodes, last));
  return plans;
}

PodPlan fewest(const std::vector<PodRoom>& rooms, std::size_t nodes, const PodPlan& last) {
  Rooms by_size = those(rooms, [](const PodRoom& room) { return room.nodes > 0; });
  std::ranges::sort(by_size, {}, [](const PodRoom* room) {
    return std::pair(-static_cast<std::ptrdiff_t>(room->nodes), std::string_view(room->id));
  });
  std::size_t count = 0, sum = 0;
  while (count < by_size.size() && sum < nodes) sum += by_size[count++]->nodes;
  if (sum < nodes) return {};
  if (nodes % count == 0) {
    const std::size_t share = nodes / count;
    if (PodPlan plan =
            even_plan(those(rooms, [&](const PodRoom& room) { return room.nodes >= share; }), count,
                      share, last);
        !plan.empty())
      return plan;
  }
  PodPlan plan;
  std::size_t rest = nodes;
  for (std::size_t i = 0; i + 1 < count; rest -= by_size[i++]->nodes)
    plan.emplace(by_size[i]->id, by_size[i]->nodes);
  // The smallest of the others that holds the remaining nodes.
  for (std::size_t i = by_size.size(); i-- > count - 1;) {
    if (by_size[i]->nodes < rest) continue;
    plan.emplace(by_size[i]->id, rest);
    break;
  }
  return plan;
}

bool holds(const std::vector<PodRoom>& rooms, const PodPlan& plan, std::size_t nodes) {
  std::size_t sum = 0;
  for (const auto& [pod, count] : plan) {
    const auto room = std::ranges::find(rooms, pod, &PodRoom::id);
    if (room == rooms.end() || room->nodes < count) return false;
    sum += count;
  }
  return sum == nodes;
}

}  // namespace

std::vector<PodPlan> pod_plans(const std::vector<PodRoom>& rooms, std::size_t nodes, PodRule rule,
                               const PodPlan& last) {
  if (rule == PodRule::Table) return for_table(rooms, nodes, last);
  PodPlan plan = fewest(rooms, nodes, last);
  if (plan.empty()) return {};
  // The last plan is no worse than any other, and its nodes keep their positions.
  if (last.size() <= plan.size() && holds(rooms, last, nodes)) return {last, std::move(plan)};
  return {std::move(plan)};
}

}  // namespace muster::core
