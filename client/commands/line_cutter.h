// Whole lines of each rank's log, from chunks that are cut anywhere. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace muster::client {

class LineCutter {
 public:
  // A line longer than `most` (a progress bar without a newline) is given in pieces.
  explicit LineCutter(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}

  // `each(line)` for every line that ends in what came so far; without the newline.
  template <class Each>
  void add(std::uint32_t attempt, std::uint32_t rank, std::string_view data, Each each) {
    std::string& rest = rest_[{attempt, rank}];
    const std::size_t looked = rest.size();
    rest += data;
    std::size_t start = 0;
    for (std::size_t end = rest.find('\n', looked); end != std::string::npos; end = rest.find('\n', start)) {
      each(std::string_view(rest).substr(start, end - start));
      start = end + 1;
    }
    rest.erase(0, start);
    if (rest.size() > most_) {
      each(std::string_view(rest));
      rest.clear();
    }
  }
  // What stands there without a newline: nothing will be put behind it.
  template <class Each>
  void end(std::uint32_t attempt, std::uint32_t rank, Each each) {
    const auto found = rest_.find({attempt, rank});
    if (found == rest_.end()) return;
    const std::string rest = std::move(found->second);
    rest_.erase(found);
    if (!rest.empty()) each(std::string_view(rest));
  }
  // The same of every log: each(attempt, rank, line).
  template <class Each>
  void end_all(Each each) {
    for (const auto& [log, rest] : std::exchange(rest_, {})) {
      if (!rest.empty()) each(log.first, log.second, std::string_view(rest));
    }
  }

 private:
  std::size_t most_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> rest_;  // (attempt, rank)
};

}  // namespace muster::client
