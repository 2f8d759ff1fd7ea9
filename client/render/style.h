// Colours and width of an output. Values and functions; the code that prints asks for them first.
//
// NO_COLOR and a pipe mean plain text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::render {

enum class Tint : std::uint8_t { Plain, Dim, Bold, Good, Bad, Warn, Accent };

struct Style {
  bool colour = false;
  [[nodiscard]] std::string paint(Tint tint, std::string_view text) const;
};

// Returns the style for file descriptor `fd`. It has colour when `fd` is a terminal, NO_COLOR is
// unset and TERM is not "dumb".
Style style_of(int fd);
bool is_terminal(int fd);
// True for a terminal with a movable cursor: TERM is neither unset nor "dumb". NO_COLOR does not
// matter here.
bool is_screen(int fd);
// Returns the columns of the terminal of `fd`, or 100 if there is none.
std::size_t terminal_width(int fd);
// Returns its rows; 0: not known.
std::size_t terminal_height(int fd);

// Returns the columns that `text` takes. Escape sequences take none; UTF-8 counts code points.
std::size_t display_width(std::string_view text);
// Cuts the text to at most `columns`, with an ellipsis when something is cut.
std::string clip(std::string_view text, std::size_t columns);
// Makes text of others harmless: control characters (common/base/controls.h) become '?', tabs stay.
// All text for people goes through one of these functions, at the latest in to_text(), field_line()
// and report().
std::string printable(std::string_view text);
std::string printable_lines(std::string_view text);  // line ends stay, too
// Keeps the sequences of Style::paint as well, if the style has colour.
std::string painted(std::string_view text, const Style& style);
// Keeps the colours (SGR) of a program's line and resets them at its end; removes them if the style
// has no colour. Also removes sequences that clear the rest of the line, because they mean nothing
// here. All other control characters become what printable() makes of them.
std::string coloured(std::string_view text, const Style& style);
// Returns "output       /out/one\n": a line with one field of an object. The value is wrapped to
// `width` columns (wrap.h).
std::string field_line(const Style& style, std::string_view name, std::string_view value,
                       std::size_t width = 0);

}  // namespace muster::render
