// Formats one event as one line of the trace. Pure.
#pragma once

#include <string>

#include "controller/core/model/event.h"

namespace muster::sim {
std::string text_of(const core::EventBody& body);
}
