#include "common/base/label.h"

#include <algorithm>

#include "common/base/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kKeyMost = 63;
constexpr std::size_t kValueMost = 255;

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Empty: it is a key.
std::string wrong_key(std::string_view key) {
  if (key.empty() || key.size() > kKeyMost || !is_alnum(key.front()))
    return "a key has 1 to 63 characters and begins with a letter or digit";
  if (!std::ranges::all_of(
          key, [](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '/' || c == '-'; }))
    return "a key holds letters, digits and any of . _ / -";
  return {};
}

std::unexpected<Error> refuse(std::string_view text, const std::string& why) {
  return fail(ErrorCode::InvalidArgument, "reading label '" + std::string(text) + "': " + why +
                                              "; labels are written key=value, as in 'rack=r12'");
}

}  // namespace

Result<std::pair<std::string, std::string>> parse_label(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return refuse(text, "there is no '='");
  std::string key = text.substr(0, equals), value = text.substr(equals + 1);
  if (const std::string wrong = wrong_key(key); !wrong.empty()) return refuse(text, wrong);
  if (!is_utf8(text)) return refuse(text, "it is not UTF-8 text");
  if (value.size() > kValueMost || !std::ranges::all_of(value, [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
      })) {
    return refuse(text, "a value has at most 255 printable bytes");
  }
  return std::pair{std::move(key), std::move(value)};
}

Result<void> check_label_key(std::string_view key) {
  if (const std::string wrong = wrong_key(key); !wrong.empty()) return refuse(key, wrong);
  return {};
}

}  // namespace muster
