// Compares lines with the greedy algorithm of Myers (An O(ND) Difference Algorithm and Its
// Variations, 1986).
#include "client/render/line_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace muster::render {
namespace {

using Lines = std::vector<std::string_view>;

constexpr int kEditsMost = 1000;  // the trace then takes 8 MiB
constexpr std::size_t kContext = 3;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// For each text, which of its lines stay.
struct Kept {
  std::vector<bool> from, to;
};

Kept compare(const Lines& from, const Lines& to, std::size_t head, std::size_t tail) {
  Kept kept{.from = std::vector<bool>(from.size(), true), .to = std::vector<bool>(to.size(), true)};
  const int rows = static_cast<int>(from.size() - head - tail),
            columns = static_cast<int>(to.size() - head - tail);
  const auto changed = [&](int x, int y, int next_x, int next_y) {
    for (int i = x; i < next_x; ++i) kept.from[head + static_cast<std::size_t>(i)] = false;
    for (int i = y; i < next_y; ++i) kept.to[head + static_cast<std::size_t>(i)] = false;
  };
  const int most = std::min(rows + columns, kEditsMost);
  std::vector<std::vector<int>> trace;  // furthest x of each diagonal, before each number of edits
  std::vector<int> furthest(static_cast<std::size_t>(2 * most + 3), 0);
  const auto at = [&](std::vector<int>& v, int diagonal) -> int& {
    return v[static_cast<std::size_t>(diagonal + most + 1)];
  };
  for (int edits = 0; edits <= most; ++edits) {
    trace.emplace_back(furthest.begin() + (most + 1 - edits - 1),
                       furthest.begin() + (most + 1 + edits + 2));
    for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const bool down = diagonal == -edits || (diagonal != edits && at(furthest, diagonal - 1) <
                                                                        at(furthest, diagonal + 1));
      int x = down ? at(furthest, diagonal + 1) : at(furthest, diagonal - 1) + 1;
      int y = x - diagonal;
      while (x < rows && y < columns &&
             from[head + static_cast<std::size_t>(x)] == to[head + static_cast<std::size_t>(y)])
        ++x, ++y;
      at(furthest, diagonal) = x;
      if (x < rows || y < columns) continue;
      for (int step = edits; step > 0; --step) {  // walk back along the best path
        const std::vector<int>& before = trace[static_cast<std::size_t>(step)];
        const auto old = [&](int k) { return before[static_cast<std::size_t>(k + step + 1)]; };
        const int k = x - y;
        const bool came_down = k == -step || (k != step && old(k - 1) < old(k + 1));
        const int previous = came_down ? k + 1 : k - 1;
        const int previous_x = old(previous), previous_y = previous_x - previous;
        if (came_down)
          changed(0, previous_y, 0, previous_y + 1);
        else
          changed(previous_x, 0, previous_x + 1, 0);
        x = previous_x;
        y = previous_y;
      }
      return kept;
    }
  }
  changed(0, 0, rows, columns);
  return kept;
}

std::string range(std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("{}", first + 1)
                    : fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

}  // namespace

std::string line_diff(std::string_view from_name, std::string_view to_name,
                      std::string_view from_text, std::string_view to_text) {
  if (from_text == to_text) return {};
  const Lines from = lines_of(from_text), to = lines_of(to_text);
  std::size_t head = 0, tail = 0;
  const std::size_t shorter = std::min(from.size(), to.size());
  while (head < shorter && from[head] == to[head]) ++head;
  while (tail < shorter - head && from[from.size() - 1 - tail] == to[to.size() - 1 - tail]) ++tail;
  const Kept kept = compare(from, to, head, tail);

  std::string out = fmt::format("--- {}\n+++ {}\n", from_name, to_name);
  for (std::size_t x = 0, y = 0; x < from.size() || y < to.size();) {
    if (x < from.size() && y < to.size() && kept.from[x] && kept.to[y]) {
      ++x, ++y;
      continue;
    }
    const std::size_t before = std::min(kContext, x), first_x = x - before, first_y = y - before;
    std::string block;
    for (std::size_t i = first_x; i < x; ++i) block += fmt::format(" {}\n", from[i]);
    std::size_t same = 0;  // lines in a row since the last change
    while ((x < from.size() || y < to.size()) && same < 2 * kContext) {
      if (x < from.size() && !kept.from[x]) {
        block += fmt::format("-{}\n", from[x++]);
        same = 0;
      } else if (y < to.size() && !kept.to[y]) {
        block += fmt::format("+{}\n", to[y++]);
        same = 0;
      } else {
        block += fmt::format(" {}\n", from[x]);
        ++x, ++y, ++same;
      }
    }
    for (; same > kContext; --same) {  // drop context that is not shown
      --x, --y;
      block.resize(block.size() - from[x].size() - 2);
    }
    out += fmt::format("@@ -{} +{} @@\n{}", range(first_x, x - first_x),
                       range(first_y, y - first_y), block);
  }
  return out;
}

}  // namespace muster::render
