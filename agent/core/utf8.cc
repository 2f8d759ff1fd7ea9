#include "agent/core/utf8.h"

#include "common/base/utf8.h"

namespace muster::agent {

bool is_utf8(std::string_view text) { return muster::is_utf8(text); }

std::string as_utf8(std::string text) {
  for (std::size_t at = utf8_prefix(text); at < text.size();
       at += utf8_prefix(std::string_view(text).substr(at)))
    text[at++] = '?';
  return text;
}

}  // namespace muster::agent
