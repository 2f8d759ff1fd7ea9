#include "agent/core/utf8.h"

#include <google/protobuf/stubs/common.h>

#include <algorithm>

namespace muster::agent {

bool is_utf8(std::string_view text) { return google::protobuf::internal::IsStructurallyValidUTF8(text.data(), static_cast<int>(text.size())); }

std::string as_utf8(std::string text) {
  constexpr std::size_t kCharacterMost = 4;
  if (is_utf8(text)) return text;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    std::size_t length = 1;
    while (length <= std::min(kCharacterMost, rest.size()) && !is_utf8(rest.substr(0, length))) ++length;
    if (length > std::min(kCharacterMost, rest.size())) {
      text[at] = '?';
      length = 1;
    }
    at += length;
  }
  return text;
}

}  // namespace muster::agent
