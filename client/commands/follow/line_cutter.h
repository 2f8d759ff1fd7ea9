// A LineCutter makes whole lines of each log from chunks that are cut anywhere. The Follower of
// follow.cc and the Printer of logs.cc own one each. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/commands/follow/log_label.h"

namespace muster::client {

inline constexpr std::size_t kLineBytesMost = 1 << 20;

// What a carriage return means. Programs use it to draw a progress bar repeatedly in one line.
enum class Returns : std::uint8_t {
  Kept,  // a byte like any other
  // the text before it is a line of its own, marked as redrawn; an empty text is dropped. Directly
  // before a line's end it belongs to that end.
  Cut
};

class LineCutter {
 public:
  // A line longer than `most` bytes is returned in pieces of that length, each like a line. The
  // last piece is the rest.
  explicit LineCutter(std::size_t most = kLineBytesMost, Returns returns = Returns::Kept)
      : most_(most), returns_(returns) {}

  // Calls `each(line)` or `each(line, redrawn)` for every line that ends in the bytes so far,
  // without the newline. Keeps at most `most` bytes for each log in addition to `data`.
  template <class Each>
  void add(const LogLabel& log, std::string_view data, Each each) {
    std::string& rest = rest_[log];
    const char* const ends = returns_ == Returns::Cut ? "\r\n" : "\n";
    // A carriage return at the end waits for the byte after it.
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
  // Returns the text so far that has no newline yet.
  [[nodiscard]] std::string_view rest(const LogLabel& log) const {
    const auto found = rest_.find(log);
    return found == rest_.end() ? std::string_view() : shown(found->second);
  }
  // The same, when nothing will follow it.
  template <class Each>
  void end(const LogLabel& log, Each each) {
    const auto found = rest_.find(log);
    if (found == rest_.end()) return;
    const std::string rest = std::move(found->second);
    rest_.erase(found);
    if (!shown(rest).empty()) give(each, shown(rest), false);
  }
  // The same for every log: calls each(label, line).
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
  // Passes the whole pieces of [start, end) to `each`, but never its last byte, so that a line's
  // end does not become an empty line. Returns where the rest begins.
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
