#include "common/base/controls.h"

namespace muster {

std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  if (text.empty()) return 0;
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool turns = (byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f ||
                                          (byte(2) >= 0xaa && byte(2) <= 0xae))) ||
                     (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
  return turns ? 3 : 0;
}

bool has_controls(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (control_length(text.substr(at)) > 0) return true;
  }
  return false;
}

std::string without_controls(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = control_length(text.substr(at));
    const bool kept = length == 1 && keep.find(text[at]) != std::string_view::npos;
    out.push_back(length == 0 || kept ? text[at] : '?');
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace muster
