#include "common/base/names.h"

#include <algorithm>
#include <cstddef>

namespace muster {
namespace {

constexpr std::size_t kNodeNameMost = 63;

// Not std::isalnum: that depends on the locale.
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_node_name(std::string_view text) {
  return !text.empty() && text.size() <= kNodeNameMost && is_letter_or_digit(text.front()) &&
         std::ranges::all_of(text, [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace muster
