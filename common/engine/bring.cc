#include "common/engine/bring.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/start.h"
#include "common/engine/template.h"

namespace muster::engine {
namespace {

constexpr std::string_view kRankDirs = "mindformers";

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

void add_shards(std::vector<v1::Bring>& all, const LaunchRequest& request, std::size_t node) {
  const v1::JobSpec& spec = *request.spec;
  if (request.resume_source.empty() || spec.checkpoint().layout() != kRankDirs) return;
  const NodeSlot& own = request.nodes[node];
  const bool every = spec.launch().per() == v1::LAUNCH_PER_ONCE;
  for (const HeldOn& held : request.resume_held) {
    if (held.node == own.name) continue;
    v1::Bring bring;
    bring.set_node(held.node);
    bring.set_path(request.resume_source);
    bring.set_layout(std::string(kRankDirs));
    bring.set_step(request.resume_step);
    if (!every) {
      const std::uint32_t end = own.first_rank + own.rank_count;
      for (std::uint32_t rank = own.first_rank; rank < end; ++rank)
        if (held.ranks.count == 0 ||
            (rank >= held.ranks.first && rank - held.ranks.first < held.ranks.count))
          bring.add_only(fmt::format("rank_{}", rank));
      if (bring.only().empty()) continue;
    }
    all.push_back(std::move(bring));
  }
}

void add_dirs(std::vector<v1::Bring>& all, const LaunchRequest& request, std::size_t node) {
  for (const v1::BringSpec& wanted : request.spec->brings()) {
    auto parsed = Template::parse(wanted.dir());
    auto dir = parsed ? parsed->expand(StageDirs(request), 4096) : fail(parsed.error());
    if (!dir) continue;  // checked when the job was submitted
    const std::vector<HeldOn>* nodes = &request.resume_held;
    if (!wanted.stage().empty()) {
      const auto stage = request.stages_held.find(wanted.stage());
      if (stage == request.stages_held.end()) continue;
      nodes = &stage->second.nodes;
      *dir += fmt::format("/attempt-{}{}{}", stage->second.attempt,
                          wanted.below().empty() ? "" : "/", wanted.below());
    }
    for (const HeldOn& held : *nodes) {
      if (held.node == request.nodes[node].name) continue;
      v1::Bring& bring = all.emplace_back();
      bring.set_node(held.node);
      bring.set_path(*dir);
    }
  }
}

}  // namespace

std::vector<v1::Bring> brings(const LaunchRequest& request, std::size_t node) {
  std::vector<v1::Bring> all;
  if (request.spec->checkpoint().storage() != v1::CHECKPOINT_STORAGE_LOCAL) return all;
  add_shards(all, request, node);
  add_dirs(all, request, node);
  return all;
}

}  // namespace muster::engine
