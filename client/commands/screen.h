// What a followed job shows: lines that scroll, and a block of a few rows that is drawn anew in
// place below them.
//
//   lines       go to standard output, whatever stands behind it
//   the block   is drawn there too where the cursor can be moved, else on stderr's terminal;
//               nowhere beside a pipe, whose other end is most often that same terminal ("| tee
//               run.log"), and nowhere where nothing is a terminal
//
// Between two drawings the cursor stands on the empty row above the block. What somebody else
// writes meanwhile (a script in the background, "^C") begins there and stays; and of a block that
// wraps since the window was made narrower nothing is left behind, for all below the cursor is
// cleared. One thread.
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
  // `quiet`: there is no block. The styles are standard output's and stderr's.
  Screen(const render::Style& out, const render::Style& err, bool quiet);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] bool has_block() const { return block_ != nullptr; }
  // Lines scroll above the block, on one terminal.
  [[nodiscard]] bool is_one() const { return block_ == stdout; }
  [[nodiscard]] const render::Style& line_style() const { return out_; }
  [[nodiscard]] const render::Style& block_style() const { return block_ == stderr ? err_ : out_; }
  [[nodiscard]] std::size_t block_width() const;

  void say(std::string_view line);
  void draw(const std::vector<std::string>& rows);
  void erase();
  // The last drawing: where the lines went elsewhere it stays, else it makes room for them.
  void end(const std::vector<std::string>& rows);

 private:
  void write_block(const std::string& bytes);

  const render::Style out_, err_;
  std::FILE* block_ = nullptr;
  std::string drawn_;  // as it stands there; empty: nothing does
};

}  // namespace muster::client
