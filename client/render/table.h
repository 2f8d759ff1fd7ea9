// A Table formats columns for people. Plain values.
//
// A column is as wide as its widest cell, and numbers are at the right. The last column is cut at
// the terminal's edge. A column whose cells may be cut shrinks first, so that one long name does
// not push the others over the edge.
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
  // if the table is wider than the terminal, its cells are cut to no less than this; 0: never
  std::size_t least = 0;
};
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Makes control characters of cells harmless. Every line has a line end. With `width` 0 nothing is
// cut. Without rows only the titles are printed.
std::string to_text(const Table& given, const Style& style, std::size_t width);

}  // namespace muster::render
