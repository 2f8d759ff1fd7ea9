#include "client/render/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace muster::render {
namespace {

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

// Length of the escape sequence that begins at `at`, 0 = none.
std::size_t escape_length(std::string_view text, std::size_t at) {
  if (text[at] != '\x1b' || at + 1 >= text.size() || text[at + 1] != '[') return 0;
  std::size_t end = at + 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
  return end - at + 1;
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
  return std::string(code(tint)).append(text).append("\x1b[0m");
}

bool is_terminal(int fd) { return isatty(fd) == 1; }

Style style_of(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return {.colour = is_terminal(fd) && (no_colour == nullptr || *no_colour == '\0') && term != nullptr && std::string_view(term) != "dumb"};
}

std::size_t terminal_width(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
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
  if (escaped) out += "\x1b[0m";
  return out;
}

namespace {

// Of what a terminal obeys though it is no ASCII control, in UTF-8: C1 (U+0080 to U+009F: CSI, OSC), and the marks that turn the direction of text
// (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), behind which a line shows what it does not say. 0: it begins with none.
std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool turns = (byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xaa && byte(2) <= 0xae))) ||
                     (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
  return turns ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (const std::size_t length = control_length(text.substr(at)); length > 0) {
      out.push_back('?');
      at += length;
    } else {
      out.push_back(byte == '\t' || (byte >= 0x20 && byte != 0x7f) ? text[at] : '?');
      ++at;
    }
  }
  return out;
}

}  // namespace muster::render
