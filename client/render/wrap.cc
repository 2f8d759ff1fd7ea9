#include "client/render/wrap.h"

#include <algorithm>

#include "client/render/style.h"

namespace muster::render {
namespace {

constexpr std::size_t kTextLeast = 24;  // columns; in fewer, many rows would have one word

}  // namespace

std::size_t row_width(int fd) { return is_terminal(fd) ? terminal_width(fd) : 0; }

std::string wrap(std::string_view line, std::size_t indent, std::size_t width) {
  if (width == 0 || display_width(line) <= width) return std::string(line);
  const std::size_t hanging = indent + kTextLeast <= width ? indent : std::min(indent, width / 2);
  std::string out;
  std::size_t used = 0;  // columns of the row
  bool first_row = true;
  while (!line.empty()) {
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    if (blanks == line.size()) break;
    const std::size_t end = std::min(line.find(' ', blanks), line.size());
    const std::string_view word = line.substr(blanks, end - blanks);
    line.remove_prefix(end);
    const std::size_t start = used + blanks;
    const std::size_t columns = display_width(word);
    const bool in_text = !first_row || start >= indent;
    if (in_text && start + columns > width && start > hanging) {
      out.append("\n").append(hanging, ' ');
      used = hanging;
      first_row = false;
    } else {
      out.append(blanks, ' ');
      used = start;
    }
    out += word;
    used += columns;
  }
  return out;
}

}  // namespace muster::render
