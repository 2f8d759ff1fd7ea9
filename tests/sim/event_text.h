// Formats one event as one line of the trace. Pure.
#pragma once

#include <string>

#include "controller/core/event.h"

namespace muster::sim {
std::string text_of(const core::EventBody& body);
}
