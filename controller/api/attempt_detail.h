// Adds an attempt's nodes and its ranks' exits to an answer, as far as it has room. Pure.
//
// For a thousand ranks they are about a megabyte for each attempt.
//
// - Full: all nodes with all their fields, and all exits in rank order.
// - Brief: of each node the name, first rank and count; of the exits the verdict's own and the
//   first bad ones, at most kBriefExits, the earliest first.
//
// docs/architecture.md (Bounds) has the rule for readers.
#pragma once

#include <cstddef>

#include "controller/core/model/ledger.h"
#include "muster/v1/job.pb.h"

namespace muster::controller {

// The overhead of a message inside another one: tag, length, and room for numbers that grow.
inline constexpr std::size_t kFieldBytes = 16;
inline constexpr std::size_t kBriefExits = 4;

// Upper bounds of what the two functions below add, computed without making it.
[[nodiscard]] std::size_t brief_bytes(const core::AttemptRecord& attempt);
[[nodiscard]] std::size_t full_bytes(const core::AttemptRecord& attempt);

void add_brief(v1::Attempt& shown, const core::AttemptRecord& attempt);
// Replaces what is there.
void add_full(v1::Attempt& shown, const core::AttemptRecord& attempt);

// Adds nodes only: in full if they fit into `most` bytes. Otherwise it adds names and ranks, for as
// many nodes as fit.
void add_nodes(v1::Attempt& shown, const core::AttemptRecord& attempt, std::size_t most);

}  // namespace muster::controller
