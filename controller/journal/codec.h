// Converts events to records, and records to events; no other code does this. Pure.
//
// A record is (format, type, payload). `format` names how the payload is written (1: a
// muster.journal.v1.Record). `type` is the number of the record's kind in its oneof.
//
// decode() accepts a record only if it understands all of it:
// - An unknown format, kind, field or enum value is Unsupported ("a newer muster wrote this").
// - A payload that does not parse, that contradicts its type, or that has a value that no muster
//   writes (a port beyond 65535, a new lineage of generation 0), is DataLoss.
//
// decode() does not judge whether the event follows from those before it; the caller does. encode()
// leaves out the unknown fields and enum values of messages inside an event (a spec, an inventory),
// so decode() reads whatever encode() wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "controller/core/model/event.h"

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

// The name for people, for example "agent_fact"; empty: the type is unknown.
std::string_view kind_name(std::uint32_t type);

}  // namespace muster::journal
