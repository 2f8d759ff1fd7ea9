// Colour and width of an output. Values only; whoever prints asks first. NO_COLOR and a pipe mean
// plain text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::render {

enum class Tint : std::uint8_t { Plain, Dim, Bold, Good, Bad, Warn, Accent };

struct Style {
  bool colour = false;
  [[nodiscard]] std::string paint(Tint tint, std::string_view text) const;
};

// For file descriptor `fd`: colour when it is a terminal, NO_COLOR is unset and TERM is not "dumb".
Style style_of(int fd);
bool is_terminal(int fd);
// A terminal whose cursor can be moved: TERM is neither unset nor "dumb". NO_COLOR says nothing of
// that.
bool is_screen(int fd);
// Columns of the terminal behind `fd`; 100 when there is none.
std::size_t terminal_width(int fd);
// Its rows; 0: not known.
std::size_t terminal_height(int fd);

// Columns that `text` takes (escape sequences take none; UTF-8 counts code points).
std::size_t display_width(std::string_view text);
// Cut to at most `columns`, with an ellipsis when something is cut.
std::string clip(std::string_view text, std::size_t columns);
// What others wrote, made harmless: control characters (common/base/controls.h) as '?'; tabs stay.
// All that a person reads goes through one of these, at the latest in to_text(), field_line() and
// report().
std::string printable(std::string_view text);
std::string printable_lines(std::string_view text);  // line ends stay, too
// what Style::paint writes stays, too, where there is colour
std::string painted(std::string_view text, const Style& style);
// A program's line with its colours (SGR), and plain again at its end; without them where there is
// no colour. That it clears the rest of its line says nothing here. All other control characters as
// printable() has them.
std::string coloured(std::string_view text, const Style& style);
// "output       /out/one\n": a line of what is shown of one thing.
std::string field_line(const Style& style, std::string_view name, std::string_view value);

}  // namespace muster::render
