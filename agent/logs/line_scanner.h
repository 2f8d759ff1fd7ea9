// LineScanner splits a stream of bytes, which arrives in pieces of any size, into lines. Each
// RankReader owns one, and find_evidence() makes one for a call. Pure.
//
// A line ends at \n, at \r (progress bars) or at finish(); \r\n is one line end. Of a line longer
// than kMost only the first kMost bytes are passed on. Only the unfinished line is copied and kept.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace muster::agent {

class LineScanner {
 public:
  static constexpr std::size_t kMost = 64 << 10;

  // Calls `line(std::string_view)` for each line that ends in `bytes`. The view is valid during the
  // call. Empty lines are skipped.
  template <class Line>
  void feed(std::string_view bytes, Line&& line) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at != end) {
      const auto* newline =
          static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      const char* const stop = newline ? newline : end;
      // Carriage returns are rare: one search for each line, and only lines with one are split
      // again.
      while (const auto* back = static_cast<const char*>(
                 std::memchr(at, '\r', static_cast<std::size_t>(stop - at)))) {
        complete({at, static_cast<std::size_t>(back - at)}, line);
        at = back + 1;
      }
      if (!newline) return hold({at, static_cast<std::size_t>(end - at)});
      complete({at, static_cast<std::size_t>(newline - at)}, line);
      at = newline + 1;
    }
  }

  // The stream has ended: the buffered bytes are a line.
  template <class Line>
  void finish(Line&& line) {
    complete({}, line);
  }

  // The stream was cut: the buffered bytes are dropped.
  void reset() {
    buffered_.clear();
    buffered_bytes_ = 0;
  }
  // Bytes of the unfinished line so far, including those beyond kMost.
  [[nodiscard]] std::size_t buffered_bytes() const { return buffered_bytes_; }

 private:
  template <class Line>
  void complete(std::string_view last, Line& line) {
    if (buffered_.empty()) {
      if (!last.empty()) line(last.substr(0, kMost));
    } else {
      hold(last);
      line(std::string_view(buffered_));
      buffered_.clear();
    }
    buffered_bytes_ = 0;
  }
  void hold(std::string_view bytes) {
    buffered_bytes_ += bytes.size();
    buffered_.append(bytes.substr(0, kMost - buffered_.size()));
  }

  std::string buffered_;
  std::size_t buffered_bytes_ = 0;
};

}  // namespace muster::agent
