// Takes the values of a job's secrets out of a line that is kept or shown: a line of evidence, the
// sentence of a failed start. A plain value; any thread.
//
// Each place of a value is replaced by "[secret NAME]": the value itself, each of its first 64
// lines of at least 8 bytes, and its base64 (RFC 4648, also in the alphabet for URLs). A part of a
// value of at least 8 bytes at the beginning or at the end of the line, too: agents cut lines.
// Values of less than 4 bytes are left, since every line has such bytes by chance. What a program
// has changed in another way is not found: it is help against mistakes, and none against a program
// that wants to show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::controller {

class Hidden {
 public:
  static constexpr std::size_t kLeastBytes = 4, kLeastPart = 8, kLinesMost = 64;

  void add(const std::string& name, std::string_view value);
  // A value is not known any more, so evidence is left out as a whole.
  void hide_all() { all_ = true; }
  [[nodiscard]] bool hides_all() const { return all_; }
  // Longer values first: the result depends neither on the order of add() nor on names. Time grows
  // with the bytes of the line times the number of values.
  [[nodiscard]] std::string hide(std::string_view line) const;

 private:
  struct Needle {
    std::string bytes;
    std::string name;
  };
  void add_needle(const std::string& name, std::string_view bytes);

  std::vector<Needle> needles_;  // the longest first
  bool all_ = false;
};

}  // namespace muster::controller
