// A path, an environment or a log may hold any bytes; a `string` of a message that travels only
// UTF-8: the reader of one with anything else in it cannot parse the whole message. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster::agent {

[[nodiscard]] bool is_utf8(std::string_view text);
// '?' for each byte that is of no character.
[[nodiscard]] std::string as_utf8(std::string text);

}  // namespace muster::agent
