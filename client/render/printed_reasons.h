// PrintedReasons shortens repeated reasons in printed text. The Follower of
// client/commands/follow/follow.cc owns one. One thread.
//
// A long reason that is also in the last line with a reason becomes "as above". Without this, one
// missing program was reported six times in a dozen rows, each time with its whole PATH. If two
// reasons alternate, each is printed, because "above" means the nearest reason.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace muster::render {

class PrintedReasons {
 public:
  // bytes of a reason; a shorter one is clearer when it is repeated
  static constexpr std::size_t kLong = 80;
  static constexpr std::size_t kLines = 20;  // lines above that are searched

  // Returns `text` as it should be printed. From a ": " up to its end or a "; ", a reason that is
  // already above is left out. The text counts as printed.
  std::string once(std::string_view text);
  // The same for a reason without a text in front.
  std::string reason(std::string_view text) { return once(": " + std::string(text)).substr(2); }
  // Another line was printed.
  void pass();

 private:
  void remember(std::string text);
  std::deque<std::string> lines_;  // the last lines; empty where no reference is allowed
};

}  // namespace muster::render
