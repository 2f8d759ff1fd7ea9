// Columns for a person: as wide as their widest cell, numbers to the right, the last column cut at
// the terminal's edge. A column whose cells may be cut gives way first, so that one long name does
// not push the others over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/render/style.h"

namespace muster::render {

enum class Align : std::uint8_t { Left, Right };
struct Column {
  std::string title;
  Align align = Align::Left;
  // where the table is wider than the terminal its cells are cut, to no less than this; 0: never
  std::size_t least = 0;
};
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Control characters of a cell are made harmless. With a line end behind every line. `width` 0: no
// cut. No rows: only the titles.
std::string to_text(const Table& given, const Style& style, std::size_t width);

}  // namespace muster::render
