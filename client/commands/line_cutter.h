// Whole lines of each log, from chunks that are cut anywhere. One thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "client/commands/log_label.h"

namespace muster::client {

inline constexpr std::size_t kLineBytesMost = 1 << 20;

class LineCutter {
 public:
  // A line longer than `most` bytes (a progress bar without a newline) is given in pieces of that length, each as if it were a line; the last is what is left.
  explicit LineCutter(std::size_t most = kLineBytesMost) : most_(most) {}

  // `each(line)` for every line that ends in what came so far; without the newline. Holds at most `most` bytes a log besides `data`.
  template <class Each>
  void add(const LogLabel& log, std::string_view data, Each each) {
    std::string& rest = rest_[log];
    const std::size_t looked = rest.size();
    rest += data;
    std::size_t start = 0;
    for (std::size_t end = rest.find('\n', looked); end != std::string::npos; end = rest.find('\n', start)) {
      start = cut(rest, start, end, each);
      each(std::string_view(rest).substr(start, end - start));
      start = end + 1;
    }
    rest.erase(0, cut(rest, start, rest.size(), each));
  }
  // What stands there without a newline: nothing will be put behind it.
  template <class Each>
  void end(const LogLabel& log, Each each) {
    const auto found = rest_.find(log);
    if (found == rest_.end()) return;
    const std::string rest = std::move(found->second);
    rest_.erase(found);
    if (!rest.empty()) each(std::string_view(rest));
  }
  // The same of every log: each(label, line).
  template <class Each>
  void end_all(Each each) {
    for (const auto& [log, rest] : std::exchange(rest_, {})) {
      if (!rest.empty()) each(log, std::string_view(rest));
    }
  }

 private:
  // Gives the whole pieces of [start, end), but never its last byte: what ends a line must not come out as an empty one. Where the rest begins.
  template <class Each>
  std::size_t cut(std::string_view text, std::size_t start, std::size_t end, Each& each) const {
    for (; end - start > most_; start += most_) each(text.substr(start, most_));
    return start;
  }

  std::size_t most_;
  std::map<LogLabel, std::string> rest_;
};

}  // namespace muster::client
