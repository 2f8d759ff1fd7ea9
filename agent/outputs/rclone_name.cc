#include "agent/outputs/rclone_name.h"

#include <string_view>

namespace muster::agent {

std::optional<std::string> rclone_name(const std::string& name) {
  constexpr std::string_view kQuote = "\u201B", kPicture = "\xE2\x90";
  std::string spelled;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const std::string_view rest = std::string_view(name).substr(i);
    const bool is_picture = rest.starts_with(kPicture) && rest.size() > 2 &&
                            static_cast<unsigned char>(rest[2]) <= 0xA1;
    if (rest.starts_with(kQuote) || is_picture) return std::nullopt;
    if (c >= 0x20 && c != 0x7F) {
      spelled += name[i];
      continue;
    }
    spelled += kPicture;
    spelled += static_cast<char>(c == 0x7F ? 0xA1 : 0x80 + c);
  }
  return spelled;
}

}  // namespace muster::agent
