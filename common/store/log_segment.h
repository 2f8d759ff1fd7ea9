// The name of a segment of a log in a store (outputs.logs_to). Pure.
//
//   LOGS_TO/JOB/attempt-A/rank-N/SEGMENT               a rank
//   LOGS_TO/JOB/attempt-A/NAME@NODE/SEGMENT            another process
//   LOGS_TO/JOB/attempt-A/plog/rank-N/FILE/SEGMENT     a file of the process log
//
// SEGMENT is SEQUENCE-FROM-TO.log.gz: a gzip file with the bytes of the log from the logical offset
// FROM to TO (docs/logs.md). Numbers have leading zeros, so that sorted names are the order of the
// log. A number that is missing in the sequence is a segment that is missing. Where TO is not the
// next FROM, bytes of the log were lost before they were cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::store {

struct LogSegment {
  std::uint64_t sequence = 1;  // from 1
  std::uint64_t from = 0, to = 0;
};
[[nodiscard]] std::string text_of(const LogSegment& segment);
// Nothing: it is no such name.
std::optional<LogSegment> parse_log_segment(std::string_view name);

}  // namespace muster::store
