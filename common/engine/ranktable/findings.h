// The results of checking a rank table. Plain values.
//
// A problem makes HCCL or an engine refuse the table. A note is about something that HCCL reads,
// but that a person should know.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::ranktable {

struct Finding {
  std::string where;  // "server_list[1].device[3].device_ip"; empty = the whole
  std::string message;
  friend bool operator==(const Finding&, const Finding&) = default;
};

inline constexpr std::size_t kFindingsMax = 100;  // problems that are kept; the rest is counted
inline constexpr std::size_t kNotesMax = 20;      // notes that are kept; the rest is dropped

struct Findings {
  std::vector<Finding> problems;
  std::vector<Finding> notes;
  std::size_t left_out = 0;  // problems beyond kFindingsMax

  void problem(std::string where, std::string message) {
    if (problems.size() < kFindingsMax)
      problems.push_back({std::move(where), std::move(message)});
    else
      ++left_out;
  }
  void note(std::string where, std::string message) {
    if (notes.size() < kNotesMax) notes.push_back({std::move(where), std::move(message)});
  }
};

// "where: message" on one line for each finding, without a line end after the last. The number of
// left-out findings is a line, too.
std::string to_text(const std::vector<Finding>& findings, std::size_t left_out = 0);

}  // namespace muster::ranktable
