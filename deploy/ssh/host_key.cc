#include "deploy/ssh/host_key.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace muster::ssh {
namespace {

constexpr std::size_t kTypeBytesMost = 64;

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

bool is_type_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-@._").find(c) != std::string_view::npos;
}

}  // namespace

std::optional<std::string_view> take_string(std::string_view& bytes) {
  if (bytes.size() < 4) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length = length << 8U | octets(bytes)[i];
  if (length > bytes.size() - 4) return std::nullopt;
  const std::string_view text = bytes.substr(4, length);
  bytes.remove_prefix(4 + length);
  return text;
}

std::string string_bytes(std::string_view text) {
  std::string out;
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    out += static_cast<char>(static_cast<unsigned char>(text.size() >> shift));
  return out.append(text);
}

std::string key_type(std::string_view blob) {
  const auto type = take_string(blob);
  if (!type || type->empty() || type->size() > kTypeBytesMost ||
      !std::ranges::all_of(*type, is_type_character))
    return {};
  return std::string(*type);
}

std::string fingerprint(std::string_view blob) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(blob.data(), blob.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    return {};
  std::string text = to_base64({reinterpret_cast<const char*>(digest.data()), size});
  text.erase(text.find_last_not_of('=') + 1);
  return "SHA256:" + text;
}

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4, '\0');
  // EVP_EncodeBlock writes a NUL behind the text, where std::string has its own.
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), octets(bytes),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t digits = text.find_last_not_of('=') + 1, padding = text.size() - digits;
  if (padding > 2) return std::nullopt;
  const auto digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  };
  if (!std::ranges::all_of(text.substr(0, digits), digit)) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), octets(text),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

}  // namespace muster::ssh
