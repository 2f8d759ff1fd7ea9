// The one place where events become records and back. Pure values, no strand.
//
// A record is (format, type, payload): format says how the payload is written (1: a
// muster.journal.v1.Record), type is the number of the record's kind in its oneof. decode accepts
// only what it understands whole: an unknown format, kind, field or enum value is Unsupported ("a
// newer muster wrote this"), a payload that does not parse or contradicts its type is DataLoss.
// Whether the event makes sense is the caller's matter. encode leaves out what the messages inside
// an event (a spec, an inventory) have of fields unknown here: whatever it wrote, decode reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "controller/core/event.h"

namespace muster::journal {

inline constexpr std::uint32_t kFormatProto = 1;

struct Record {
  std::uint32_t format = kFormatProto;
  std::uint32_t type = 0;
  std::string payload;
  friend bool operator==(const Record&, const Record&) = default;
};

Record encode(const core::Event& event);
Result<core::Event> decode(const Record& record);

// "rank_exited", for people; empty: unknown.
std::string_view kind_name(std::uint32_t type);

// The job an event is about; nullptr: none.
const JobId* job_of(const core::Event& event);

}  // namespace muster::journal
