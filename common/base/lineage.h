// Which continuation of a cluster's journal a controller writes. Plain value.
//
// Each accepted loss of the journal's end begins a new lineage. Epochs and journal indexes compare
// only within one lineage. Controllers and agents compare the lineage first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace muster {

struct Lineage {
  // How many losses were accepted before, those that were lost themselves included as far as they
  // were known.
  std::uint64_t generation = 0;
  // Random, made with the generation. Two losses that were accepted on copies of one journal have
  // the same generation, and differ here. Empty: generation 0.
  std::string id;
  friend bool operator==(const Lineage&, const Lineage&) = default;
};

// It may come from a network or a file. The id is shown in texts and logs.
inline bool well_formed(const Lineage& lineage) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
  };
  if (lineage.generation == 0) return lineage.id.empty();
  return !lineage.id.empty() && lineage.id.size() <= 64 && std::ranges::all_of(lineage.id, plain);
}

}  // namespace muster
