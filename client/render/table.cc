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

}  // namespace

std::string to_text(const Table& given, const Style& style, std::size_t width) {
  Table table = given;
  for (auto& row : table.rows) {
    for (std::string& cell : row) cell = painted(cell, style);
  }
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(display_width(column.title));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      text += last && table.columns[i].align == Align::Left ? cells[i] : pad(cells[i], widths[i], table.columns[i].align);
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
