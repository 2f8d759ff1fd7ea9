#include "client/render/table.h"

#include <algorithm>

namespace muster::render {
namespace {

std::string pad(std::string cell, std::size_t columns, Align align) {
  const std::size_t have = display_width(cell);
  if (have >= columns) return cell;
  const std::string blanks(columns - have, ' ');
  return align == Align::Left ? cell + blanks : blanks + cell;
}

constexpr std::size_t kLastLeast = 16;  // minimum width for a last text column to be useful

// Cuts cells of the columns that allow it, until everything before the last column's end fits into
// `width`.
void make_room(Table& table, std::vector<std::size_t>& widths, std::size_t width) {
  if (widths.empty()) return;
  const bool text_last = table.columns.back().align == Align::Left;
  std::size_t need =
      2 * (widths.size() - 1) + (text_last ? std::min(widths.back(), kLastLeast) : widths.back());
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) need += widths[i];
  for (std::size_t i = 0; i < widths.size() && need > width; ++i) {
    const std::size_t least = table.columns[i].least;
    if (least == 0 || widths[i] <= least) continue;
    const std::size_t less = std::min(need - width, widths[i] - least);
    widths[i] -= less;
    need -= less;
    for (auto& row : table.rows)
      if (i < row.size()) row[i] = clip(row[i], widths[i]);
  }
}

}  // namespace

std::string to_text(const Table& given, const Style& style, std::size_t width) {
  Table table = given;
  for (auto& row : table.rows) {
    for (std::string& cell : row) cell = painted(cell, style);
  }
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(display_width(column.title));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }
  if (width > 0) make_room(table, widths, width);
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      text += last && table.columns[i].align == Align::Left
                  ? cells[i]
                  : pad(cells[i], widths[i], table.columns[i].align);
      if (!last) text += "  ";
    }
    return (width > 0 ? clip(text, width) : text) + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  std::string out = style.paint(Tint::Bold, line(titles).substr(0, std::string::npos));
  for (const auto& row : table.rows) out += line(row);
  return out;
}

}  // namespace muster::render
