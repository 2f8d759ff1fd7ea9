// Two texts side by side, as `diff -u` shows them. Pure; bounded: of texts that differ in too many
// places, one block that leaves the old and brings the new.
#pragma once

#include <string>
#include <string_view>

namespace muster::render {

// Empty: they are the same. Both end with a line end.
std::string line_diff(std::string_view from_name, std::string_view to_name, std::string_view from,
                      std::string_view to);

}  // namespace muster::render
