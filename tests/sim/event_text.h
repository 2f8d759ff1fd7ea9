// One line an event, for the trace.
#pragma once

#include <string>

#include "controller/core/event.h"

namespace muster::sim {
std::string text_of(const core::EventBody& body);
}
