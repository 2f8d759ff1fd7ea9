// Characters that a terminal obeys instead of showing them. Text of other people (specs, names, log
// lines, error messages that quote them) is printed without them: it could otherwise move the
// cursor, set the window's title, or show what it does not say. Pure; linear.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Bytes of the control character that `text` begins with, 0: it begins with none. These are C0
// (U+0000 to U+001F, tab and line end too), DEL, C1 in UTF-8 (U+0080 to U+009F: CSI, OSC), and the
// marks that turn the direction of text (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
[[nodiscard]] std::size_t control_length(std::string_view text);

[[nodiscard]] bool has_controls(std::string_view text);

// Each as '?', but the one-byte ones of `keep`.
[[nodiscard]] std::string without_controls(std::string_view text, std::string_view keep = {});

}  // namespace muster
