// Formats one public event as a line for people. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "client/render/style.h"
#include "muster/v1/event.pb.h"

namespace muster::render {

// Returns "12:00:00.123  attempt 2  rank-exited  rank 3 on n1 was killed by SIGKILL", without a
// line end at the end. The text is wrapped to `width` columns (wrap.h).
std::string event_line(const v1::Event& event, const Style& style, bool with_job,
                       std::size_t width = 0);
// The same for a line above a live view, also of 40 columns: "12:00:00  rank 3 on n1 was killed by
// SIGKILL".
std::string short_event_line(const v1::Event& event, const Style& style, std::size_t width = 0);
// True if a person who follows one job wants to see the event without asking. `muster events` shows
// the noisy ones, too.
bool worth_showing(const v1::Event& event);

}  // namespace muster::render
