// Short texts for people: times, durations, sizes, phases. Pure.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <string>

#include "client/render/style.h"
#include "common/base/time.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// Returns "12s", "3m20s", "2h05m", "4d03h"; below ten seconds "3.5s", below a second "350ms".
std::string duration_text(Duration duration);
// Returns "12s ago", or "-" for an unset time.
std::string ago_text(const google::protobuf::Timestamp& stamp, WallTime now);
// Returns "2026-03-01T12:00:00.123Z", or an empty text for an unset time.
std::string iso_text(const google::protobuf::Timestamp& stamp);
// Returns "2026-03-01T12:00Z", or an empty text for an unset time.
std::string minute_text(const google::protobuf::Timestamp& stamp);
// Returns "12:00:00.123" in the reader's local time, or "-" for an unset time.
std::string clock_text(const google::protobuf::Timestamp& stamp);
std::string bytes_text(std::uint64_t bytes);  // "1.5 MiB"
std::string phase_text(v1::JobPhase phase);   // "running"
Tint phase_tint(v1::JobPhase phase);
bool is_final(v1::JobPhase phase);
std::string class_text(v1::FailureClass cls);     // "user error"
std::string exit_text(const v1::RankExit& exit);  // "status 1", "killed by SIGKILL"

}  // namespace muster::render
