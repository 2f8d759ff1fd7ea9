#include "controller/core/model/ledger.h"

namespace muster::core {

const std::string* label_of(const NodeRecord& node, const std::string& key) {
  if (const auto own = node.labels.find(key); own != node.labels.end()) return &own->second;
  const auto reported = node.inventory.labels().find(key);
  return reported == node.inventory.labels().end() ? nullptr : &reported->second;
}

std::uint32_t AttemptRecord::world_size() const {
  // Ranks are dense in the order of the parts. Only idle parts can follow the last part with ranks.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->idle()) return part->placed.first_rank.value + part->placed.rank_count;
  }
  return 0;
}

std::optional<WallTime> AttemptRecord::decided_at() const {
  if (!broke_at) return std::nullopt;
  // An attempt may break after the last exit: all ranks ended well, but without the required
  // success.
  return exits_known_at ? std::optional(std::max(*exits_known_at, *broke_at)) : ended_at;
}

NodePart* AttemptRecord::part(const NodeName& node) {
  const auto found = part_index.find(node);
  return found == part_index.end() ? nullptr : &parts[found->second];
}

const NodePart* AttemptRecord::part(const NodeName& node) const {
  const auto found = part_index.find(node);
  return found == part_index.end() ? nullptr : &parts[found->second];
}

const NodePart* AttemptRecord::part_of(RankNo rank) const {
  // Parts are in rank order. Idle parts have no ranks and may be between them.
  auto found = std::ranges::upper_bound(
      parts, rank, {}, [](const NodePart& part) { return part.placed.first_rank; });
  while (found != parts.begin()) {
    if (const NodePart& part = *--found; !part.idle())
      return rank.value - part.placed.first_rank.value < part.placed.rank_count ? &part : nullptr;
  }
  return nullptr;
}

namespace {

template <class Attempts>
auto* find_attempt(Attempts& attempts, AttemptNo number) {
  const auto found = std::ranges::lower_bound(attempts, number, {}, &AttemptRecord::number);
  return found == attempts.end() || found->number != number ? nullptr : &*found;
}

}  // namespace

AttemptRecord* JobRecord::attempt(AttemptNo number) { return find_attempt(attempts, number); }
const AttemptRecord* JobRecord::attempt(AttemptNo number) const {
  return find_attempt(attempts, number);
}

const AttemptRecord* JobRecord::before(const AttemptRecord& attempt) const {
  const auto found = std::ranges::lower_bound(attempts, attempt.number, {}, &AttemptRecord::number);
  return found == attempts.begin() ? nullptr : &*std::prev(found);
}

}  // namespace muster::core
