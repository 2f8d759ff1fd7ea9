#include "agent/logs/log_segment.h"

namespace muster::agent {

LogPiece piece_from(const logs::v1::Segment& segment, const logs::v1::Floor& floor,
                    std::uint64_t from) {
  const std::uint64_t base = segment.base();
  const bool continued = segment.begin() == logs::v1::SEGMENT_BEGIN_CONTINUED;
  const bool replaced = continued || segment.begin() == logs::v1::SEGMENT_BEGIN_REPLACED;
  LogPiece piece{.offset = from};
  // At the base itself an unknown number of bytes may be missing, unless the file before was read
  // to its end.
  if (from < base || (from == base && segment.number() > 0 && !continued)) {
    piece.loss = LogLoss{from, replaced ? kReplacedReason : kTruncatedReason,
                         WallTime(Duration(segment.at_ns()))};
    piece.offset = base;
  }
  if (piece.offset < base + floor.position()) {
    if (!piece.loss) piece.loss = LogLoss{from, floor.reason(), WallTime(Duration(floor.at_ns()))};
    piece.offset = base + floor.position();
  }
  return piece;
}

}  // namespace muster::agent
