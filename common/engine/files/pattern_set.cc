#include "common/engine/files/pattern_set.h"

#include "common/base/assert.h"

namespace muster::engine {
namespace {

// How common a byte is in logs of training programs, roughly: letters of English prose and digits
// are everywhere.
int commonness(char c) {
  constexpr std::string_view kEverywhere = "etaoinsrl 0123456789";
  constexpr std::string_view kUsual = "dcumpfghbyvw_.-,:/";
  if (kEverywhere.find(c) != std::string_view::npos) return 10;
  if (kUsual.find(c) != std::string_view::npos) return 5;
  return 1;
}

std::size_t rarest_at(std::string_view pattern) {
  std::size_t best = 0;
  int best_cost = 1 << 20;
  for (std::size_t at = 0; at + PatternSet::kFingerprint <= pattern.size(); ++at) {
    int cost = 0;
    for (const char c : pattern.substr(at, PatternSet::kFingerprint)) cost += commonness(c);
    if (cost < best_cost) {
      best_cost = cost;
      best = at;
    }
  }
  return best;
}

}  // namespace

PatternSet::PatternSet(std::span<const std::string_view> patterns) {
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    MUSTER_ASSERT(patterns[i].size() >= kFingerprint, "a pattern is shorter than its fingerprint");
    const std::size_t at = rarest_at(patterns[i]);
    const std::uint32_t word = four(patterns[i].data() + at);
    for (const std::uint32_t three : {word & kThree, word >> 8})
      table_[place(three) / 64] |= std::uint64_t{1} << (place(three) % 64);
    buckets_[bucket(word)].push_back({.pattern = i,
                                      .fingerprint_at = at,
                                      .fingerprint = word,
                                      .text = std::string(patterns[i])});
  }
}

}  // namespace muster::engine
