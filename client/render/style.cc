#include "client/render/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "client/render/wrap.h"
#include "common/base/controls.h"

namespace muster::render {
namespace {

constexpr std::string_view kPlain = "\x1b[0m";

std::string_view code(Tint tint) {
  switch (tint) {
    case Tint::Plain: return "";
    case Tint::Dim: return "\x1b[2m";
    case Tint::Bold: return "\x1b[1m";
    case Tint::Good: return "\x1b[32m";
    case Tint::Bad: return "\x1b[31m";
    case Tint::Warn: return "\x1b[33m";
    case Tint::Accent: return "\x1b[36m";
  }
  return "";
}

// Returns the length of the escape sequence that begins at `at`; 0 = none.
std::size_t escape_length(std::string_view text, std::size_t at) {
  if (text[at] != '\x1b' || at + 1 >= text.size() || text[at + 1] != '[') return 0;
  std::size_t end = at + 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
  return end - at + 1;
}

// Returns the length of a sequence at the beginning of `text`: "ESC [ digits ; : m", which sets
// colours, or "ESC [ digit K", which clears a line. Returns 0 for anything else.
std::size_t paint_length(std::string_view text) {
  constexpr std::size_t kMost = 64;
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.substr(0, kMost).find_first_not_of("0123456789;:", 2);
  if (end == std::string_view::npos) return 0;
  return text[end] == 'm' || (text[end] == 'K' && end <= 3) ? end + 1 : 0;
}

bool knows_sequences() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

std::size_t code_point_length(unsigned char first) {
  if (first < 0x80) return 1;
  if ((first & 0xE0) == 0xC0) return 2;
  if ((first & 0xF0) == 0xE0) return 3;
  if ((first & 0xF8) == 0xF0) return 4;
  return 1;
}

}  // namespace

std::string Style::paint(Tint tint, std::string_view text) const {
  if (!colour || tint == Tint::Plain) return std::string(text);
  return std::string(code(tint)).append(text).append(kPlain);
}

bool is_terminal(int fd) { return isatty(fd) == 1; }

Style style_of(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  return {.colour = is_screen(fd) && (no_colour == nullptr || *no_colour == '\0')};
}

bool is_screen(int fd) { return is_terminal(fd) && knows_sequences(); }

std::size_t terminal_width(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

std::size_t terminal_height(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t skip = escape_length(text, at); skip > 0) {
      at += skip;
      continue;
    }
    at += code_point_length(static_cast<unsigned char>(text[at]));
    ++columns;
  }
  return columns;
}

std::string clip(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string out;
  std::size_t used = 0;
  bool escaped = false;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t skip = escape_length(text, at); skip > 0) {
      out.append(text.substr(at, skip));
      escaped = true;
      at += skip;
      continue;
    }
    if (used + 1 >= columns) break;
    const std::size_t length = code_point_length(static_cast<unsigned char>(text[at]));
    out.append(text.substr(at, length));
    at += length;
    ++used;
  }
  if (columns > 0) out += "…";
  if (escaped) out += kPlain;
  return out;
}

std::string printable(std::string_view text) { return without_controls(text, "\t"); }

std::string printable_lines(std::string_view text) { return without_controls(text, "\t\n"); }

std::string painted(std::string_view text, const Style& style) {
  if (!style.colour) return printable(text);
  constexpr std::array kTints = {Tint::Dim, Tint::Bold, Tint::Good,
                                 Tint::Bad, Tint::Warn, Tint::Accent};
  std::string out;
  while (!text.empty()) {
    const std::size_t escape = std::min(text.find('\x1b'), text.size());
    out += printable(text.substr(0, escape));
    text.remove_prefix(escape);
    if (text.empty()) break;
    std::string_view sequence = text.starts_with(kPlain) ? kPlain : std::string_view();
    for (const Tint tint : kTints) {
      if (text.starts_with(code(tint))) sequence = code(tint);
    }
    out += sequence.empty() ? "?" : sequence;
    text.remove_prefix(std::max<std::size_t>(1, sequence.size()));
  }
  return out;
}

std::string coloured(std::string_view text, const Style& style) {
  std::string out;
  bool painted = false;
  while (!text.empty()) {
    const std::size_t escape = std::min(text.find('\x1b'), text.size());
    out += printable(text.substr(0, escape));
    text.remove_prefix(escape);
    if (text.empty()) break;
    const std::size_t length = paint_length(text);
    if (length == 0) out += '?';
    if (length > 0 && text[length - 1] == 'm' && style.colour) {
      out += text.substr(0, length);
      painted = true;
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  if (painted && !out.ends_with(kPlain)) out += kPlain;
  return out;
}

std::string field_line(const Style& style, std::string_view name, std::string_view value,
                       std::size_t width) {
  std::string title(name);
  title.resize(std::max<std::size_t>(title.size(), 12), ' ');
  const std::string start = style.paint(Tint::Dim, title) + " ";
  return wrap(start + painted(value, style), display_width(start), width) + "\n";
}

}  // namespace muster::render
