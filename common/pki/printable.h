// Quotes bytes that others wrote in the errors of this library. Pure; linear time.
#pragma once

#include <string>
#include <string_view>

namespace muster::pki {

// At most 160 characters of printable ASCII: any other byte becomes '?', and "..." follows a text
// that was cut.
std::string printable(std::string_view bytes);

}  // namespace muster::pki
