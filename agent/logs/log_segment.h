// A segment is the content of one log file since its program last truncated or replaced it
// (muster.logs.v1.Segment). These functions say where a segment begins, and what is lost before it.
// Pure. LogFile and RenamedFiles call them under LogFile's mutex.
#pragma once

#include <cstdint>

#include "agent/logs/log_source.h"
#include "muster/logs/v1/logs.pb.h"

namespace muster::agent {

inline constexpr const char* kTruncatedReason = "truncated by the program";
inline constexpr const char* kReplacedReason = "replaced by the program";
inline constexpr const char* kHardCapReason = "hard cap";
inline constexpr const char* kSoftCapReason = "punched here after the controller had it";

// The first bytes of a file that are compared with Segment::head, at most.
inline constexpr std::size_t kHeadMost = 256;
// The bytes before the parser that are compared with Parsed::anchor, at most.
inline constexpr std::size_t kAnchorMost = 64;

// Returns an empty piece at the first byte that the segment has at or after logical offset `from`,
// with what is lost before that byte. `floor`: the file's bytes before it are holes.
LogPiece piece_from(const logs::v1::Segment& segment, const logs::v1::Floor& floor,
                    std::uint64_t from);

}  // namespace muster::agent
