// Columns for a person: as wide as their widest cell, numbers to the right, the last column cut at the terminal's edge.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/render/style.h"

namespace muster::render {

enum class Align : std::uint8_t { Left, Right };
struct Column {
  std::string title;
  Align align = Align::Left;
};
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Control characters of a cell are made harmless. With a line end behind every line. `width` 0: no cut. No rows: only the titles.
std::string to_text(const Table& given, const Style& style, std::size_t width);

}  // namespace muster::render
