// Whole lines of each log, from chunks that are cut anywhere. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/commands/log_label.h"

namespace muster::client {

inline constexpr std::size_t kLineBytesMost = 1 << 20;

// What a carriage return does, by which programs draw their progress bars again and again in one
// line.
enum class Returns : std::uint8_t {
  Kept,  // a byte as any other
  // what stands before it is given by itself, as redrawn; before a line's end it is part of that,
  // and an empty piece is none
  Cut
};

class LineCutter {
 public:
  // A line longer than `most` bytes is given in pieces of that length, each as if it were a line;
  // the last is what is left.
  explicit LineCutter(std::size_t most = kLineBytesMost, Returns returns = Returns::Kept)
      : most_(most), returns_(returns) {}

  // `each(line)` or `each(line, redrawn)` for every line that ends in what came so far; without the
  // newline. Holds at most `most` bytes a log besides `data`.
  template <class Each>
  void add(const LogLabel& log, std::string_view data, Each each) {
    std::string& rest = rest_[log];
    const char* const ends = returns_ == Returns::Cut ? "\r\n" : "\n";
    // a carriage return there waits for what follows it
    const std::size_t scanned = rest.empty() ? 0 : rest.size() - 1;
    rest += data;
    std::size_t start = 0;
    for (std::size_t end = rest.find_first_of(ends, scanned); end != std::string::npos;
         end = rest.find_first_of(ends, start)) {
      const std::size_t next = rest.find_first_not_of('\r', end);
      if (next == std::string::npos) {
        rest.erase(end + 1);
        break;
      }
      const bool redrawn = rest[next] != '\n';
      start = cut(rest, start, end, each);
      if (!redrawn || end > start)
        give(each, std::string_view(rest).substr(start, end - start), redrawn);
      start = redrawn ? next : next + 1;
    }
    rest.erase(0,
               cut(rest, start, start + shown(std::string_view(rest).substr(start)).size(), each));
  }
  // What stands there without a newline so far.
  [[nodiscard]] std::string_view rest(const LogLabel& log) const {
    const auto found = rest_.find(log);
    return found == rest_.end() ? std::string_view() : shown(found->second);
  }
  // The same, and nothing will be put behind it.
  template <class Each>
  void end(const LogLabel& log, Each each) {
    const auto found = rest_.find(log);
    if (found == rest_.end()) return;
    const std::string rest = std::move(found->second);
    rest_.erase(found);
    if (!shown(rest).empty()) give(each, shown(rest), false);
  }
  // The same of every log: each(label, line).
  template <class Each>
  void end_all(Each each) {
    for (const auto& [log, rest] : std::exchange(rest_, {})) {
      if (!shown(rest).empty()) each(log, shown(rest));
    }
  }

 private:
  template <class Each>
  static void give(Each& each, std::string_view line, bool redrawn) {
    if constexpr (std::is_invocable_v<Each&, std::string_view, bool>)
      each(line, redrawn);
    else
      each(line);
  }
  [[nodiscard]] std::string_view shown(std::string_view rest) const {
    if (returns_ == Returns::Cut && rest.ends_with('\r')) rest.remove_suffix(1);
    return rest;
  }
  // Gives the whole pieces of [start, end), but never its last byte: what ends a line must not come
  // out as an empty one. Where the rest begins.
  template <class Each>
  std::size_t cut(std::string_view text, std::size_t start, std::size_t end, Each& each) const {
    for (; end - start > most_; start += most_) give(each, text.substr(start, most_), false);
    return start;
  }

  std::size_t most_;
  Returns returns_;
  std::map<LogLabel, std::string> rest_;
};

}  // namespace muster::client
