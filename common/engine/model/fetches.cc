#include "common/engine/model/fetches.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/model/layout.h"
#include "common/engine/model/start.h"
#include "common/engine/model/template.h"

namespace muster::engine {
namespace {

class StageDirs final : public TemplateValues {
 public:
  explicit StageDirs(const LaunchRequest& request) : request_(request) {}
  [[nodiscard]] Result<std::string> value(std::string_view name) const override {
    constexpr std::string_view kStages = "stages.";
    if (name.starts_with(kStages)) return stage_value(request_, name.substr(kStages.size()));
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'${{{}}}' has no value here (${{stages.S.out}})", name));
  }

 private:
  const LaunchRequest& request_;
};

void add_shards(std::vector<v1::Fetch>& all, const LaunchRequest& request, std::size_t node) {
  const v1::JobSpec& spec = *request.spec;
  if (request.resume_source.empty() || !has_rank_dirs(spec.checkpoint().layout())) return;
  const PlacedNode& own = request.nodes[node];
  const bool every = spec.launch().per() == v1::LAUNCH_PER_ONCE;
  for (const ShardHolder& holder : request.resume_holders) {
    if (holder.node == own.node) continue;
    v1::Fetch fetch;
    fetch.set_node(holder.node.str());
    fetch.set_path(request.resume_source);
    fetch.set_layout(spec.checkpoint().layout());
    fetch.set_step(request.resume_step);
    if (!every) {
      const std::uint32_t end = own.first_rank.value + own.rank_count;
      for (std::uint32_t rank = own.first_rank.value; rank < end; ++rank)
        if (holder.has(RankNo(rank))) fetch.add_only(fmt::format("rank_{}", rank));
      if (fetch.only().empty()) continue;
    }
    all.push_back(std::move(fetch));
  }
}

void add_dirs(std::vector<v1::Fetch>& all, const LaunchRequest& request, std::size_t node) {
  if (request.resolved == nullptr) return;
  for (const v1::FetchSpec& wanted : request.resolved->fetches()) {
    auto parsed = Template::parse(wanted.dir());
    auto dir = parsed ? parsed->expand(StageDirs(request), 4096) : fail(parsed.error());
    if (!dir) continue;  // the submission was checked for this
    const std::vector<ShardHolder>* holders = &request.resume_holders;
    if (!wanted.stage().empty()) {
      const auto stage = request.stage_shards.find(wanted.stage());
      if (stage == request.stage_shards.end()) continue;
      holders = &stage->second.holders;
      *dir += fmt::format("/attempt-{}{}{}", stage->second.attempt.value,
                          wanted.below().empty() ? "" : "/", wanted.below());
    }
    for (const ShardHolder& holder : *holders) {
      if (holder.node == request.nodes[node].node) continue;
      v1::Fetch& fetch = all.emplace_back();
      fetch.set_node(holder.node.str());
      fetch.set_path(*dir);
    }
  }
}

}  // namespace

std::vector<v1::Fetch> fetches(const LaunchRequest& request, std::size_t node) {
  std::vector<v1::Fetch> all;
  if (request.spec->checkpoint().storage() != v1::CHECKPOINT_STORAGE_LOCAL) return all;
  add_shards(all, request, node);
  add_dirs(all, request, node);
  return all;
}

}  // namespace muster::engine
