// The nodes of an attempt and its ranks' exits, as much of them as an answer has room for: of a
// thousand ranks they are a megabyte an attempt. Pure.
//
// Full: all nodes with all their fields, all exits in rank order. Brief: of nodes name, first rank
// and count; of exits the verdict's own and the first bad ones, at most kBriefExits, the earliest
// first. The rule for readers stands in docs/architecture.md (Bounds).
#pragma once

#include <cstddef>

#include "controller/core/ledger.h"
#include "muster/v1/job.pb.h"

namespace muster::controller {

// of a message within another: tag, length, and room for numbers that grow
inline constexpr std::size_t kFieldBytes = 16;
inline constexpr std::size_t kBriefExits = 4;

// Upper bounds of what the two below add, without making it.
[[nodiscard]] std::size_t brief_bytes(const core::AttemptRecord& attempt);
[[nodiscard]] std::size_t full_bytes(const core::AttemptRecord& attempt);

void add_brief(v1::Attempt& shown, const core::AttemptRecord& attempt);
// in the place of what is there
void add_full(v1::Attempt& shown, const core::AttemptRecord& attempt);

// Nodes alone: in full, else names and ranks, else as many of these as fit.
void add_nodes(v1::Attempt& shown, const core::AttemptRecord& attempt, std::size_t most);

}  // namespace muster::controller
