// OncePerCause says whether something is to be reported: each cause once, until it is over or
// another one takes its place. Plain value; whoever owns it decides the thread.
//
//   if (trouble_.first(error.message)) log::warn(error.message);
//   ...
//   trouble_.over();  // it works again: the next failure is reported
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

class OncePerCause {
 public:
  // True: this cause is not the one that was reported last.
  bool first(std::string_view cause) {
    if (reported_ == cause) return false;
    reported_ = cause;
    return true;
  }
  // For trouble of which there is one cause only.
  bool first() { return first(std::string_view()); }
  // True: something had been reported.
  bool over() { return std::exchange(reported_, std::nullopt).has_value(); }
  [[nodiscard]] bool reported() const { return reported_.has_value(); }

 private:
  std::optional<std::string> reported_;
};

}  // namespace muster
