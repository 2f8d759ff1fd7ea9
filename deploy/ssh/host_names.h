// Compares a host's name with the names field of a line of known_hosts: a comma list of patterns,
// or one hashed name. Pure.
//
// Source of the format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". A hashed name is
// "|1|SALT|HASH": base64 of 20 bytes each, the hash is HMAC-SHA1 of the name with the salt as key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::ssh {

inline constexpr std::size_t kSaltBytes = 20;

// The name as it is compared: lower case, and "[NAME]:PORT" for another port than 22.
std::string host_entry(std::string_view name, std::uint16_t port);

// '*' and '?', linear in pattern and text for each '*'.
bool matches_pattern(std::string_view pattern, std::string_view text);
// A negated pattern that matches excludes the host, whatever the others say.
bool matches_names(std::string_view names, std::string_view entry);

// "|1|SALT|HASH"; empty where libcrypto has no SHA-1.
std::string hashed_entry(std::string_view entry, std::string_view salt);
// Whether the field can be read: hashed names have their form. Others can always be.
bool sound_names(std::string_view names);

}  // namespace muster::ssh
