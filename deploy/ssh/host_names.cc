#include "deploy/ssh/host_names.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <optional>

#include "deploy/ssh/host_key.h"
#include "deploy/ssh/known_hosts.h"

namespace muster::ssh {
namespace {

constexpr std::string_view kHashMark = "|1|";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string hmac_sha1(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (HMAC(EVP_sha1(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
           &size) == nullptr)
    return {};
  return {reinterpret_cast<const char*>(digest.data()), size};
}

struct HashedName {
  std::string salt, hash;
};
std::optional<HashedName> hashed_name(std::string_view names) {
  if (!names.starts_with(kHashMark)) return std::nullopt;
  names.remove_prefix(kHashMark.size());
  const std::size_t bar = names.find('|');
  if (bar == std::string_view::npos) return std::nullopt;
  auto salt = from_base64(names.substr(0, bar)), hash = from_base64(names.substr(bar + 1));
  if (!salt || !hash || salt->size() != kSaltBytes || hash->size() != kSaltBytes)
    return std::nullopt;
  return HashedName{std::move(*salt), std::move(*hash)};
}

}  // namespace

std::string host_entry(std::string_view name, std::uint16_t port) {
  std::string out(name);
  std::ranges::transform(out, out.begin(), lower);
  return port == kSshPort ? out : "[" + out + "]:" + std::to_string(port);
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches_names(std::string_view names, std::string_view entry) {
  if (names.starts_with('|')) {
    const auto hashed = hashed_name(names);
    return hashed && hmac_sha1(hashed->salt, entry) == hashed->hash;
  }
  bool found = false;
  for (;;) {
    const std::size_t comma = names.find(',');
    std::string_view pattern = names.substr(0, comma);
    const bool negated = pattern.starts_with('!');
    if (negated) pattern.remove_prefix(1);
    if (!pattern.empty() && matches_pattern(pattern, entry)) {
      if (negated) return false;
      found = true;
    }
    if (comma == std::string_view::npos) return found;
    names.remove_prefix(comma + 1);
  }
}

std::string hashed_entry(std::string_view entry, std::string_view salt) {
  const std::string hash = hmac_sha1(salt, entry);
  if (hash.empty()) return {};
  return std::string(kHashMark) + to_base64(salt) + "|" + to_base64(hash);
}

bool sound_names(std::string_view names) {
  return !names.empty() && (!names.starts_with('|') || hashed_name(names));
}

}  // namespace muster::ssh
