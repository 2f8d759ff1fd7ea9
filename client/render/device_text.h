// A node's devices for a person: counted with their marks for a list, one a row for one node. Pure.
// What tools said of them is made harmless here.
#pragma once

#include <string>

#include "client/render/style.h"
#include "client/render/table.h"
#include "muster/v1/node.pb.h"

namespace muster::render {

// "8 ascend910b", "4 nvidia and 2 cpu", "none".
std::string devices_text(const v1::Node& node);

// "ok", "1 bad, 2 occupied", "1 warning"; "not seen" where there are findings and no device; "-"
// where nobody looks at them.
std::string health_text(const v1::Node& node, const Style& style);

// One row a device, without columns that would say nothing of any; `wide`: bus addresses as well.
Table device_table(const v1::Node& node, const Style& style, bool wide);

// What the tools say of one that is not well; empty: nothing.
std::string trouble_text(const v1::DeviceReading& reading);

}  // namespace muster::render
