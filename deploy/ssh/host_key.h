// The public key of a host as bytes: its type, its fingerprint, its base64 form. Pure; any bytes.
//
// Source of the format: RFC 4253, section 6.6: a key blob begins with its type as a string. Key
// types are written without the hash of a signature: "ssh-rsa", also where rsa-sha2-256 signs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::ssh {

inline constexpr std::size_t kKeyBytesMost = std::size_t{16} << 10U;

// Takes one string (a length of 4 bytes and that many bytes) from the front of `bytes`. Nothing:
// `bytes` is too short, and stays as it is.
std::optional<std::string_view> take_string(std::string_view& bytes);
std::string string_bytes(std::string_view text);  // the reverse: length and bytes

// "ssh-ed25519". Empty: no key blob begins like this.
std::string key_type(std::string_view blob);
// "SHA256:" and base64 without padding, as ssh-keygen -l prints it.
std::string fingerprint(std::string_view blob);

std::string to_base64(std::string_view bytes);
// Strict: padding is there, and nothing else is. Nothing: it is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace muster::ssh
