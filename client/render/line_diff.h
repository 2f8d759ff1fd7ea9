// Compares two texts and shows the differences like `diff -u`. Pure.
//
// The work is bounded: if the texts differ in too many places, the result is one block with all old
// lines, then all new ones.
#pragma once

#include <string>
#include <string_view>

namespace muster::render {

// Returns an empty text if both are equal. Both texts end with a line end.
std::string line_diff(std::string_view from_name, std::string_view to_name, std::string_view from,
                      std::string_view to);

}  // namespace muster::render
