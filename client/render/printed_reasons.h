// What was said is not said again while it can still be read: a long reason that stands in the last
// line that had one is "as above" in the next. A missing program was told six times in a dozen
// rows, its whole PATH with it. Of two reasons by turns each is said: "above" is the nearest one.
// Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace muster::render {

class PrintedReasons {
 public:
  // bytes of a reason: a shorter one is clearer said again
  static constexpr std::size_t kLong = 80;
  static constexpr std::size_t kLines = 20;  // above which it is looked for

  // `text` as it is to be said: from a ": " on, up to its end or a "; ", what stands above is left
  // out. It counts as said.
  std::string once(std::string_view text);
  // The same of a reason that stands by itself.
  std::string reason(std::string_view text) { return once(": " + std::string(text)).substr(2); }
  // Another line was said.
  void pass();

 private:
  void remember(std::string text);
  std::deque<std::string> lines_;  // the last ones; of a line that nothing may refer to, nothing
};

}  // namespace muster::render
