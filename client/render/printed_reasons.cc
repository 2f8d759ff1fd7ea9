#include "client/render/printed_reasons.h"

#include <algorithm>
#include <utility>

namespace muster::render {

std::string PrintedReasons::once(std::string_view text) {
  std::string shown(text);
  bool is_long = false;
  const auto is_above = [this](std::string_view part) {
    return std::ranges::any_of(
        lines_, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  std::size_t start = 0;
  for (std::size_t colon = text.find(": "); colon != std::string_view::npos && shown == text;
       colon = text.find(": ", start)) {
    start = colon + 2;
    is_long = is_long || text.size() >= start + kLong;
    for (std::size_t end = text.size(); end != std::string_view::npos && end >= start + kLong;
         end = text.rfind("; ", end - 1)) {
      if (!is_above(text.substr(start, end - start))) continue;
      shown = std::string(text.substr(0, start)) + "as above" + std::string(text.substr(end));
      break;
    }
  }
  if (is_long && shown == text) lines_.clear();  // a new reason: now it is the one above
  remember(std::string(text));
  return shown;
}

void PrintedReasons::pass() { remember({}); }

void PrintedReasons::remember(std::string text) {
  lines_.push_back(std::move(text));
  if (lines_.size() > kLines) lines_.pop_front();
}

}  // namespace muster::render
