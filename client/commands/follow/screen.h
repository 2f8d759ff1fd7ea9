// A Screen prints what a followed job shows: lines that scroll, and below them a block of a few
// rows that is redrawn in place. The Follower of follow.cc owns it. One thread.
//
//   lines       go to standard output, whatever is behind it
//   the block   is drawn there too if the cursor can be moved, else on stderr's terminal. It is not
//               drawn next to a pipe, whose other end is most often that same terminal ("| tee
//               run.log"), and not where nothing is a terminal.
//
// Between two drawings the cursor is on the empty row above the block. Output of other programs (a
// script in the background, "^C") begins there and stays. If the window is made narrower, a block
// may wrap; nothing of it stays behind, because a drawing clears everything below the cursor.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "client/render/style.h"

namespace muster::client {

class Screen {
 public:
  // With `quiet` there is no block. The styles are those of standard output and stderr.
  Screen(const render::Style& out, const render::Style& err, bool quiet);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] bool has_block() const { return block_ != nullptr; }
  // True if lines and block are on one terminal, so that lines scroll above the block.
  [[nodiscard]] bool is_one() const { return block_ == stdout; }
  [[nodiscard]] const render::Style& line_style() const { return out_; }
  [[nodiscard]] const render::Style& block_style() const { return block_ == stderr ? err_ : out_; }
  [[nodiscard]] std::size_t block_width() const;

  void say(std::string_view line);
  void draw(const std::vector<std::string>& rows);
  void erase();
  // Draws the block for the last time. It stays if the lines went elsewhere; otherwise it is
  // removed.
  void end(const std::vector<std::string>& rows);

 private:
  void write_block(const std::string& bytes);

  const render::Style out_, err_;
  std::FILE* block_ = nullptr;
  std::string drawn_;  // the drawing on the terminal; empty: none
};

}  // namespace muster::client
