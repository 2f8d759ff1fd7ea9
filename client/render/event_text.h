// One public event as a line for a person. Pure.
#pragma once

#include <string>

#include "client/render/style.h"
#include "muster/v1/event.pb.h"

namespace muster::render {

// "12:00:00.123  attempt 2  rank-exited  rank 3 on n1 was killed by SIGKILL"; without a line end.
std::string event_line(const v1::Event& event, const Style& style, bool with_job);
// The same above a live view, also of 40 columns: "12:00:00  rank 3 on n1 was killed by SIGKILL".
std::string short_event_line(const v1::Event& event, const Style& style);
// Whether a person who follows one job wants to see it without asking (the noisy ones are for
// `muster events`).
bool worth_showing(const v1::Event& event);

}  // namespace muster::render
