// How rclone spells the name of a local file in its lists and logs. Pure.
#pragma once

#include <optional>
#include <string>

namespace muster::agent {

// rclone's own spelling (lib/encoder, "standard"): a line of its list holds each control character
// as its picture, U+2400 to U+2421. Nothing: the name has one of these pictures, or the sign that
// rclone puts before one.
std::optional<std::string> rclone_name(const std::string& name);

}  // namespace muster::agent
