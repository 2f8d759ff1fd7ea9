// Checks and repairs UTF-8 text before it is put into a message. Pure.
//
// A path, an environment or a log may hold any bytes. A `string` field of a sent message may hold
// only UTF-8. A reader cannot parse a message that has other bytes in such a field.
#pragma once

#include <string>
#include <string_view>

namespace muster::agent {

[[nodiscard]] bool is_utf8(std::string_view text);
// Replaces each byte that belongs to no character by '?'.
[[nodiscard]] std::string as_utf8(std::string text);

}  // namespace muster::agent
