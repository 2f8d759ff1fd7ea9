// Colour and width of an output. Values only; whoever prints asks first. NO_COLOR and a pipe mean plain text.
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
// Columns of the terminal behind `fd`; 100 when there is none.
std::size_t terminal_width(int fd);

// Columns that `text` takes (escape sequences take none; UTF-8 counts code points).
std::size_t display_width(std::string_view text);
// Cut to at most `columns`, with an ellipsis when something is cut.
std::string clip(std::string_view text, std::size_t columns);
// Control characters of a hostile log or name made harmless (tabs stay).
std::string printable(std::string_view text);

}  // namespace muster::render
