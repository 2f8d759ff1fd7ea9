#include "common/pki/printable.h"

namespace muster::pki {

std::string printable(std::string_view bytes) {
  constexpr std::size_t kMost = 160;
  std::string text;
  for (const char c : bytes.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  if (bytes.size() > kMost) text += "...";
  return text;
}

}  // namespace muster::pki
