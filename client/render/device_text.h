// Text about a node's devices for people: counts for a list of nodes, and a table for one node.
// Pure.
//
// The functions make text from tools harmless (no control characters).
#pragma once

#include <string>

#include "client/render/style.h"
#include "client/render/table.h"
#include "muster/v1/node.pb.h"

namespace muster::render {

// Returns "8 ascend910b", "4 nvidia and 2 cpu", or "none".
std::string devices_text(const v1::Node& node);

// Returns "ok", "1 bad, 2 occupied", or "1 warning". "not seen" means findings without any device.
// "-" means that nothing probes the devices.
std::string health_text(const v1::Node& node, const Style& style);

// Returns one row for each device, without columns that are empty for all devices. `wide` adds bus
// addresses.
Table device_table(const v1::Node& node, const Style& style, bool wide);

// Returns the tools' text about a device that is not well, or an empty text.
std::string trouble_text(const v1::DeviceReading& reading);

}  // namespace muster::render
