#include "deploy/ssh/identity.h"

#include <string.h>

#include <algorithm>

#include "common/io/file.h"
#include "deploy/ssh/host_key.h"

namespace muster::ssh {
namespace {

constexpr std::size_t kIdentityBytesMost = std::size_t{64} << 10U;
constexpr std::string_view kOpenSshBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kMagic{"openssh-key-v1\0", 15};

// The base64 text between the first line and the line of the end.
std::string decoded_body(std::string_view text) {
  const std::size_t from = text.find('\n'), to = text.find("\n-----END");
  if (from == std::string_view::npos || to == std::string_view::npos || to < from) return {};
  std::string digits(text.substr(from, to - from));
  std::erase_if(digits, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  auto bytes = from_base64(digits);
  ::explicit_bzero(digits.data(), digits.size());
  return bytes ? std::move(*bytes) : std::string();
}

void read_openssh(std::string_view bytes, Identity& identity) {
  if (!bytes.starts_with(kMagic)) return;
  bytes.remove_prefix(kMagic.size());
  const auto cipher = take_string(bytes);
  if (!cipher || !take_string(bytes) || !take_string(bytes) || bytes.size() < 4) return;
  bytes.remove_prefix(4);  // the number of keys, always 1
  const auto blob = take_string(bytes);
  if (!blob) return;
  identity.encrypted = *cipher != "none";
  identity.type = key_type(*blob);
  identity.blob = *blob;
}

}  // namespace

Identity parse_identity(std::string_view text) {
  Identity identity;
  if (text.starts_with(kOpenSshBegin)) {
    identity.has_private = true;
    std::string bytes = decoded_body(text);
    read_openssh(bytes, identity);
    ::explicit_bzero(bytes.data(), bytes.size());
  } else if (text.starts_with("-----BEGIN ")) {
    identity.has_private = true;
    identity.encrypted = text.find("ENCRYPTED") != std::string_view::npos;
    if (text.starts_with("-----BEGIN RSA PRIVATE")) identity.type = "ssh-rsa";
  } else {
    const std::size_t from = text.find(' ');
    if (from == std::string_view::npos) return identity;
    const std::size_t to = std::min(text.find_first_of(" \r\n", from + 1), text.size());
    if (const auto blob = from_base64(text.substr(from + 1, to - from - 1));
        blob && !key_type(*blob).empty() && key_type(*blob) == text.substr(0, from)) {
      identity.type = key_type(*blob);
      identity.blob = *blob;
    }
  }
  return identity;
}

Result<Identity> read_identity(const std::string& path) {
  auto text = io::read_regular_file(path, kIdentityBytesMost);
  if (!text) return fail(std::move(text).error());
  Identity identity = parse_identity(*text);
  ::explicit_bzero(text->data(), text->size());
  if (identity.blob.empty()) {
    if (const auto open_half = io::read_regular_file(path + ".pub", kIdentityBytesMost)) {
      const Identity half = parse_identity(*open_half);
      identity.blob = half.blob;
      identity.type = half.type.empty() ? identity.type : half.type;
    }
  }
  identity.path = path;
  return identity;
}

bool libssh2_signs(std::string_view type) {
  return type.empty() || type == "ssh-ed25519" || type == "ecdsa-sha2-nistp256" ||
         type == "ecdsa-sha2-nistp384" || type == "ecdsa-sha2-nistp521";
}

}  // namespace muster::ssh
