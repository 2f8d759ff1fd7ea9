// Functions that find and replace control characters: characters that a terminal obeys and does not
// show. Pure; linear time.
//
// muster prints text of other people (specs, names, log lines, error messages that quote them)
// without control characters. They could move the cursor, set the window's title, or make the text
// show something else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Returns the length in bytes of the control character that `text` begins with, or 0 if there is
// none. Control characters are:
// - C0 (U+0000 to U+001F, tab and line end included) and DEL;
// - C1 in UTF-8 (U+0080 to U+009F: CSI, OSC);
// - the marks that change the direction of text (U+200E, U+200F, U+202A to U+202E, U+2066 to
//   U+2069).
[[nodiscard]] std::size_t control_length(std::string_view text);

[[nodiscard]] bool has_controls(std::string_view text);

// Replaces each control character by '?', except the one-byte characters in `keep`.
[[nodiscard]] std::string without_controls(std::string_view text, std::string_view keep = {});

}  // namespace muster
